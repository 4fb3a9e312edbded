#include "ablation/run_result.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/durable_files.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"

namespace lacuna {
namespace {

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
void read(const json& from, std::optional<double>& value) {
  value = from.is_null() ? std::nullopt : std::optional(from.get<double>());
}
void read(const json& from, std::optional<Comparison>& value) {
  value.reset();
  if (from.is_null()) return;
  value = Comparison{from.at("against").get<std::string>(), from.at("seed").get<int64_t>(), from.at("difference").get<double>(),
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

}  // namespace lacuna
