#pragma once

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/compression.h"
#include "base/durable_files.h"
#include "base/files.h"

namespace lacuna {

/// The exit code of a verb whose output nobody reads any more.
inline constexpr int kBrokenPipe = 128 + SIGPIPE;

/// Lines that a verb reads, processes and writes at a time.
inline constexpr size_t kLinesAtATime = 2048;

/// Makes the folder unless it is there. Throws if it cannot be made (see fail_by).
void make_output_folder(const std::filesystem::path& folder);

/// Removes the files of all outputs that are not finished. May be called by a signal handler that ends the process.
void remove_unfinished_outputs();

/// Throws UsageError where a file to write is one of `inputs`.
void require_not_read(const std::filesystem::path& output, const std::vector<std::string>& inputs);

/// Writes results to stdout, to a file that appears only once it is whole, compressed if its name ends in .gz or .zst, or to a device or
/// pipe at once.
class Output {
 public:
  /// `path` "-" is stdout. Throws UsageError for an empty path and for one of `inputs`, DataError for a folder and for one that lies in no
  /// folder, MachineError if the file cannot be written.
  explicit Output(const std::filesystem::path& path, const std::vector<std::string>& inputs = {});
  ~Output();

  /// Returns false if nobody reads stdout, or the pipe, any more.
  bool write(std::string_view text);
  /// Gives the file its name.
  void finish();
  /// Removes parts of the finished file that keep_partial_of() has kept in earlier starts, if the file has all of them.
  void remove_parts() const;
  /// Keeps a file that will not be finished beside its place, as `path`.partial (or .partial.2 and so on, where a part of an earlier start
  /// holds what this one does not), and logs that it has the results of `lines` lines of input. Does nothing if that is none, for stdout,
  /// pipes and devices, which have them, and where the disk refuses.
  void keep_partial_of(int64_t lines);

 private:
  friend void finish_together(const std::vector<Output*>& outputs, const std::vector<std::filesystem::path>& outdated);
  void sync();

  std::filesystem::path path_;
  std::vector<std::string> inputs_;
  std::unique_ptr<FileReplacement> file_;     // of a file
  std::unique_ptr<CompressedWriter> packed_;  // of a file to be compressed
  int stream_ = STDOUT_FILENO;                // of all else
};

/// Gives files that belong together, such as the two sides of a corpus, their names, so that nobody ever finds one of them beside another's
/// former version: once all are on the disk, their former versions and the `outdated` files are removed, and then each is renamed. If the
/// process ends in between, some are missing. Throws MachineError.
void finish_together(const std::vector<Output*>& outputs, const std::vector<std::filesystem::path>& outdated = {});

}  // namespace lacuna
