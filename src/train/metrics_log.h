#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace lacuna {

/// The run's `metrics.jsonl`: one JSON object a line, each with the integer `step` it belongs to.
class MetricsLog {
 public:
  /// Opens the log of a new run (what the file held is gone), or of one that goes on after `resumed_step`: then lines of later steps, which
  /// the run will write again, are dropped, and so is a last line that a crash cut short; if `validation_is_due` after that step, so are
  /// the lines of a validation there, which will come again. So the file of an interrupted run is that of an uninterrupted one. Throws
  /// DataError "file:line: ..." if a line is not a record, MachineError if the file cannot be written.
  explicit MetricsLog(std::filesystem::path file, std::optional<int64_t> resumed_step = {}, bool validation_is_due = false);

  /// Appends one line and flushes it. `record` is an object with the integer `step`. Not-a-number and infinities, which JSON lacks, become
  /// null. Throws MachineError if the disk refuses.
  void write(const nlohmann::ordered_json& record);

 private:
  void drop_lines_after(int64_t step, bool validation_is_due) const;

  std::filesystem::path file_;
  std::ofstream stream_;
};

}  // namespace lacuna
