#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"

namespace lacuna {

/// Writes scalars for TensorBoard, at each start of a run to an event file of its own: a TFRecord of protocol buffers
/// `Event`, which this class encodes itself.
class TensorBoardWriter {
 public:
  /// Creates the folder in one that is there, and in it `events.out.tfevents.<time>.<host>.<process>`, which says after which step the run
  /// resumes (0 = new): TensorBoard then ignores later steps in earlier files. Throws MachineError.
  explicit TensorBoardWriter(const std::filesystem::path& folder, int64_t step = 0);

  /// Adds the point (step, value) to the curve `tag`. Slashes in a tag group curves: `valid/bleu`.
  void scalar(const std::string& tag, double value, int64_t step);

  /// Flushes the file, so that a running TensorBoard sees the points. Throws MachineError if the disk refuses.
  void flush();

  const std::filesystem::path& file() const { return file_; }

 private:
  void write_event(int64_t step, std::string_view what);

  std::filesystem::path file_;
  std::optional<FileWriter> writer_;  // never empty after the constructor
};

}  // namespace lacuna
