#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "base/files.h"

namespace lacuna {

/// The run's `metrics.jsonl`: one JSON object a line, each with the integer `step` it belongs to.
class MetricsLog {
 public:
  /// Opens the log of a new run, overwriting the file, or of one that resumes after `resumed_step`: then drops what the
  /// run will write again (lines of later steps, a last line cut short, lines with zeros of a loss of power and, if
  /// `validation_is_due`, that step's validation), so that the file ends up as without the interruption. Throws DataError "file:line: ..."
  /// if a line is not a record, MachineError if the file cannot be written.
  explicit MetricsLog(std::filesystem::path file, std::optional<int64_t> resumed_step = {}, bool validation_is_due = false);

  /// Appends one line and flushes it. `record` is an object with the integer `step`. Not-a-number and infinities, which
  /// JSON lacks, become null. Throws MachineError if the disk refuses.
  void write(const nlohmann::ordered_json& record);
  /// Returns when all records are on the disk: before a checkpoint is that comes after them. Throws MachineError.
  void sync() const;

 private:
  void drop_lines_after(int64_t step, bool validation_is_due) const;

  std::filesystem::path file_;
  std::optional<FileWriter> writer_;  // never empty after the constructor
};

}  // namespace lacuna
