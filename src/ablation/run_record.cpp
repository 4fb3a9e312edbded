#include "ablation/run_record.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/statistics.h"
#include "config/run_files.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

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
  for (const auto& [site, values] : by_site) {
    double sum = 0;
    for (const double value : values) sum += value;
    means[site] = sum / static_cast<double>(values.size());
  }
  return means;
}

void read_metrics(const fs::path& file, RunResult& result) {
  std::vector<double> speeds;
  std::ifstream lines(file, std::ios::binary);
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
  const fs::path file = checkpoint / run_files::kWeights;
  std::ifstream stream(file, std::ios::binary);
  std::array<unsigned char, 8> prefix{};  // the length of the header, little-endian
  stream.read(reinterpret_cast<char*>(prefix.data()), prefix.size());
  size_t length = 0;
  for (size_t i = 0; i < prefix.size(); ++i) length |= static_cast<size_t>(prefix[i]) << (8 * i);
  constexpr size_t kLongestHeader = 100 << 20;
  std::string header(std::min(stream ? length : 0, kLongestHeader), ' ');
  stream.read(header.data(), static_cast<std::streamsize>(header.size()));
  const json tensors = json::parse(header, nullptr, /*allow_exceptions=*/false);
  if (!stream || !tensors.is_object()) throw CheckpointError(file.string() + ": is not a safetensors file; is the checkpoint damaged?");
  int64_t count = 0;
  for (const auto& [name, tensor] : tensors.items()) {
    if (name == "__metadata__") continue;
    int64_t numbers = 1;
    for (const json& size : tensor.at("shape")) numbers *= size.get<int64_t>();
    count += numbers;
  }
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
