#include "train/metrics_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "base/durable_files.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/spelling.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

struct Record {
  int64_t step;
  bool is_of_validation;
};

/// Nothing if the line is not a record.
std::optional<Record> record_of(const std::string& line) {
  if (is_too_deep(line)) return {};
  const nlohmann::json record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer()) return {};
  const auto kind = record.find("kind");
  return Record{record["step"].get<int64_t>(), kind != record.end() && (*kind == "valid" || *kind == "attention")};
}

}  // namespace

MetricsLog::MetricsLog(fs::path file, std::optional<int64_t> resumed_step, bool validation_is_due) : file_(std::move(file)) {
  if (resumed_step && fs::exists(file_)) drop_lines_after(*resumed_step, validation_is_due);
  writer_.emplace(file_, resumed_step ? FileWriter::Begin::kAtEnd : FileWriter::Begin::kEmpty);
  sync_folder_or_warn(file_.parent_path());
}

void MetricsLog::sync() const {
  sync_file(file_);
}

void MetricsLog::write(const nlohmann::ordered_json& record) {
  writer_->write(json_text(record) + '\n');
  writer_->flush();
}

void MetricsLog::drop_lines_after(int64_t step, bool validation_is_due) const {
  const std::string text = read_file(file_);
  std::istringstream old(text);
  std::string kept;
  int64_t number = 0, with_zeros = std::count(text.end() - std::min<ptrdiff_t>(1, std::ssize(text)), text.end(), '\0');
  for (std::string line; std::getline(old, line) && !old.eof();) {  // at the end of the file: a line without a line break is cut short
    ++number;
    if (line.find('\0') != std::string::npos) {
      ++with_zeros;
      continue;
    }
    const std::optional<Record> record = record_of(line);
    if (!record) {
      throw DataError(file_.string() + ":" + std::to_string(number) +
                      ": not a record; expected a JSON object with the integer step. Repair or remove the line, or move the file away");
    }
    const bool comes_again = record->step > step || (validation_is_due && record->step == step && record->is_of_validation);
    if (!comes_again) kept += line + '\n';
  }
  if (with_zeros > 0)
    log_warning("{}: {} with zeros in place of text, as a loss of power leaves them: dropped", file_.string(), counted(with_zeros, "line"));
  write_file_atomically(file_, kept);
}

}  // namespace lacuna
