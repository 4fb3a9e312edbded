#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace lacuna {

/// Writes scalars for TensorBoard: an event file of its own for each start of a run, as TensorBoard expects (it reads all files of the
/// folder in order).
///
/// An event file is a TFRecord of protocol buffers `Event`. Of these only a few fields are needed, so they are written by hand.
class TensorBoardWriter {
 public:
  /// Makes the folder and in it `events.out.tfevents.<time>.<host>.<process>`, which says after which step the run goes on (0: a new one):
  /// TensorBoard then forgets what an earlier file has of later steps. Throws MachineError if the file cannot be written.
  explicit TensorBoardWriter(const std::filesystem::path& folder, int64_t step = 0);

  /// Adds the point (step, value) to the curve `tag`. Slashes in a tag group curves: `valid/bleu`.
  void scalar(const std::string& tag, double value, int64_t step);

  /// Hands all that was added to the operating system, so that a running TensorBoard sees it. Throws MachineError if the disk refuses.
  void flush();

  const std::filesystem::path& file() const { return file_; }

 private:
  void write_event(int64_t step, std::string_view what);

  std::filesystem::path file_;
  std::ofstream stream_;
};

}  // namespace lacuna
