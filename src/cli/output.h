#pragma once

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/packed_writer.h"

namespace lacuna {

/// The exit code of a verb whose output nobody reads any more.
inline constexpr int kBrokenPipe = 128 + SIGPIPE;

/// Lines that a verb reads, works on and writes at a time.
inline constexpr size_t kLinesAtATime = 2048;

/// Makes the folder unless it is there. Throws DataError if it cannot be made.
void make_output_folder(const std::filesystem::path& folder);

/// Throws UsageError where writing a checkpoint to `output` would replace something other than a checkpoint, a link to one (as run folders
/// have), or one of `inputs`.
void require_new_or_checkpoint(const std::string& output, const std::vector<std::string>& inputs);

/// Throws UsageError where a file to write is one of `inputs`.
void require_not_read(const std::filesystem::path& output, const std::vector<std::string>& inputs);

/// Where results go: stdout, a file that is there only once it is whole, packed if its name ends in .gz or .zst, or a device or pipe as
/// they come.
class Output {
 public:
  /// `path` "-" is stdout. Throws UsageError for an empty path and for one of `inputs`, DataError for a folder and for one that lies in no
  /// folder, MachineError if the file cannot be written.
  explicit Output(const std::filesystem::path& path, const std::vector<std::string>& inputs = {});
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// False if nobody reads stdout, or the pipe, any more.
  bool write(std::string_view text);
  /// The file takes its name.
  void finish();

 private:
  std::filesystem::path path_;
  std::unique_ptr<FileReplacement> file_;  // of a file
  std::unique_ptr<PackedWriter> packed_;   // of a file to be packed
  int stream_ = STDOUT_FILENO;             // of all else
};

}  // namespace lacuna
