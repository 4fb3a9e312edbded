#include "ablation/run_result.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ablation/summary.h"
#include "base/durable_files.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/statistics.h"
#include "checkpoint/safetensors.h"
#include "config/run_files.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using nlohmann::json, nlohmann::ordered_json;

/// Every field of a row with its name in the file.
template <class Result, class Visitor>
void describe(Result& result, Visitor&& visit) {
  visit("variant", result.variant);
  visit("seed", result.seed);
  visit("error", result.error);
  visit("test_set", result.test_set);
  visit("bleu", result.bleu);
  visit("bleu_interval", result.bleu_interval);
  visit("chrf", result.chrf);
  visit("valid_loss", result.valid_loss);
  visit("parameters", result.parameters);
  visit("train_tokens_per_second", result.train_speed);
  visit("translate_tokens_per_second", result.translate_speed);
  visit("sparsity", result.sparsity);
  visit("peak_mebibytes", result.peak_mebibytes);
  visit("epochs", result.epochs);
  visit("updates", result.updates);
  visit("hours", result.hours);
  visit("comparison", result.comparison);
  visit("signature", result.signature);
  visit("fingerprint", result.fingerprint);
  visit("shared_fingerprint", result.shared_fingerprint);
}

template <class T>
ordered_json written(const T& value) {
  return value;
}
ordered_json written(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}
ordered_json written(const std::optional<Comparison>& value) {
  if (!value) return nullptr;
  return {{"against", value->against}, {"seed", value->seed}, {"difference", value->difference}, {"p_value", value->p_value}};
}

template <class T>
void read(const json& from, T& value) {
  from.get_to(value);
}
void read(const json& from, int64_t& value) {
  value = natural_number(from);
}
void read(const json& from, std::optional<double>& value) {
  value = from.is_null() ? std::nullopt : std::optional(from.get<double>());
}
void read(const json& from, std::optional<Comparison>& value) {
  value.reset();
  if (from.is_null()) return;
  value = Comparison{from.at("against").get<std::string>(), natural_number(from.at("seed")), from.at("difference").get<double>(),
                     from.at("p_value").get<double>()};
}

[[noreturn]] void refuse_row(const std::string& place, const std::string& reason) {
  throw DataError(place + ": is not a row that `lacuna ablate` writes (" + reason +
                  "); remove the line (its run is then measured again), or move the file away");
}

RunResult read_row(const std::string& line, const std::string& place) {
  RunResult result;
  try {
    json row = json::parse(line);
    row.emplace("shared_fingerprint", "");  // where an older Lacuna has written the row without it
    describe(result, [&](const char* name, auto& value) { read(row.at(name), value); });
  } catch (const json::exception& error) {
    refuse_row(place, error.what());
  }
  if (result.is_ended() && !result.bleu) refuse_row(place, "it has neither an error nor bleu; expected one of them");
  return result;
}

std::optional<double> number_in(const json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_number() ? std::optional(object[key].get<double>()) : std::nullopt;
}

bool is_of_kind(const json& record, const char* kind) {
  const auto found = record.find("kind");
  return found != record.end() && *found == kind;
}

/// Mean over layers of a record's `<site>.<layer>.sparsity`, by site.
std::map<std::string, double> sparsity_by_site(const json& record) {
  std::map<std::string, std::vector<double>> by_site;
  for (const auto& [key, value] : record.items())
    if (key.ends_with(".sparsity") && value.is_number()) by_site[key.substr(0, key.find('.'))].push_back(value.get<double>());
  std::map<std::string, double> means;
  for (const auto& [site, values] : by_site) means[site] = mean_of(values)->mean;
  return means;
}

void read_metrics(const fs::path& file, RunResult& result) {
  if (!fs::exists(file)) return;
  std::vector<double> speeds;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    const json record = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object()) continue;
    if (is_of_kind(record, "train")) {
      if (const auto speed = number_in(record, "tokens_per_second")) speeds.push_back(*speed);
      if (const auto memory = number_in(record, "peak_mebibytes"))
        result.peak_mebibytes = std::max(result.peak_mebibytes.value_or(0), *memory);
    }
    if (is_of_kind(record, "attention")) result.sparsity = sparsity_by_site(record);
  }
  if (!speeds.empty()) result.train_speed = median(speeds);
}

}  // namespace

ordered_json to_json(const RunResult& result) {
  ordered_json row;
  describe(result, [&](const char* name, const auto& value) { row[name] = written(value); });
  return row;
}

ResultsFile::ResultsFile(std::filesystem::path file) : file_(std::move(file)) {
  if (!std::filesystem::exists(file_)) return;
  std::string line;
  for (LineReader reader(file_); reader.next(line);)
    if (!line.empty()) rows_.push_back(read_row(line, reader.place()));
}

void ResultsFile::put(const RunResult& result) {
  const auto same = [&](const RunResult& row) { return row.variant == result.variant && row.seed == result.seed; };
  const auto found = std::find_if(rows_.begin(), rows_.end(), same);
  if (found == rows_.end())
    rows_.push_back(result);
  else
    *found = result;
  std::string text;
  for (const RunResult& row : rows_) text += json_text(to_json(row)) + "\n";
  write_file_atomically(file_, text);
}

const RunResult* ResultsFile::find(const std::string& variant, int64_t seed) const {
  for (const RunResult& row : rows_)
    if (row.variant == variant && row.seed == seed) return &row;
  return nullptr;
}

void read_training(const fs::path& run, RunResult& result) {
  read_metrics(run / run_files::kMetrics, result);
  const fs::path state_file = run / run_files::kLast / run_files::kTrainerJson;
  if (!fs::exists(state_file)) return;
  const json state = json::parse(read_file(state_file), nullptr, /*allow_exceptions=*/false);
  result.updates = number_in(state, "step");
  result.epochs = number_in(state, "epoch");
  result.hours = number_in(state, "hours");
}

int64_t count_parameters(const fs::path& checkpoint) {
  int64_t count = 0;
  for (const auto& [name, tensor] : read_safetensors(FileReader(checkpoint / run_files::kWeights))) count += tensor.numel();
  return count;
}

double nll_per_token(const std::string& scores) {
  std::istringstream lines(scores);
  double sum = 0;
  int64_t tokens = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) throw MachineError("lacuna score printed \"" + line.substr(0, 80) + "\"; expected scores");
    std::istringstream numbers(line.substr(tab + 1));
    for (std::string word; numbers >> word; ++tokens) sum -= std::strtod(word.c_str(), nullptr);  // unlike >> it takes inf and nan
  }
  if (tokens == 0) throw MachineError("lacuna score printed no scores");
  return sum / static_cast<double>(tokens);
}

std::string error_message(const std::string& last_errors) {
  static const std::string kMark = ": error: ";
  for (size_t at = last_errors.rfind(kMark); at != std::string::npos && at > 0; at = last_errors.rfind(kMark, at - 1)) {
    const size_t line = last_errors.rfind('\n', at) + 1;  // npos + 1 is 0
    if (last_errors.compare(line, 7, "lacuna ") != 0) continue;
    std::string message = last_errors.substr(last_errors.find(kMark, line) + kMark.size());
    while (!message.empty() && message.back() == '\n') message.pop_back();
    return message;
  }
  return "";
}

}  // namespace lacuna
