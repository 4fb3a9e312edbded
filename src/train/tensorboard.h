#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace lacuna {

/// Writes scalars for TensorBoard. Each start of a run writes an event file of its own; TensorBoard reads all files of
/// the folder in order.
///
/// An event file is a TFRecord of protocol buffers `Event`, which this class encodes itself: few fields are needed.
class TensorBoardWriter {
 public:
  /// Creates the folder and in it `events.out.tfevents.<time>.<host>.<process>`, which says after which step the run
  /// resumes (0 = a new run): TensorBoard then ignores later steps in earlier files. Throws MachineError if the file
  /// cannot be written.
  explicit TensorBoardWriter(const std::filesystem::path& folder, int64_t step = 0);

  /// Adds the point (step, value) to the curve `tag`. Slashes in a tag group curves: `valid/bleu`.
  void scalar(const std::string& tag, double value, int64_t step);

  /// Flushes the file to the operating system, so that a running TensorBoard sees the points. Throws MachineError if
  /// the disk refuses.
  void flush();

  const std::filesystem::path& file() const { return file_; }

 private:
  void write_event(int64_t step, std::string_view what);

  std::filesystem::path file_;
  std::ofstream stream_;
};

}  // namespace lacuna
