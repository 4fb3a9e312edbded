#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/content_hash.h"
#include "base/files.h"

/// Files and folders that are whole on disk or not there at all, whenever the program or the machine stops. Functions throw MachineError
/// with the file's name and the system's reason.
namespace lacuna {

/// The process that writes a temporary file or folder, named in it as "MACHINE.PROCESS": so the leftovers of killed processes are known.
class WriterProcess {
 public:
  /// This process.
  WriterProcess();
  /// Reads what name() writes; empty if `text` is something else.
  static std::optional<WriterProcess> parse(std::string_view text);

  std::string name() const { return machine_ + "." + std::to_string(process_); }
  bool is_this_process() const;
  /// True if the process ran on this host, in this container, and has ended.
  bool has_ended_here() const;
  /// True if the process has ended. Processes of other hosts and containers cannot be seen: they count as ended when nobody has touched
  /// `written`, their file, for as long as `patience`.
  bool is_gone(const std::filesystem::path& written, std::chrono::seconds patience = std::chrono::hours(24)) const;

 private:
  WriterProcess(std::string_view machine, pid_t process) : machine_(machine), process_(process) {}

  std::string machine_;  // 16 hexadecimal digits
  pid_t process_;
};

/// A new folder under TMPDIR or /tmp, removed with its contents by the destructor; what killed processes of this user left there is removed
/// when the next one is made. Throws MachineError if it cannot be made.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A file that replaces another one in one step, once it is whole. Until then it stands beside it under a temporary
/// name of its own; leftovers of killed processes are removed. Without `finish` the old file stays. A mount point, as
/// in some containers, is overwritten once the new file is whole, which stays and is named by the error if that fails.
class FileReplacement {
 public:
  /// Requires is_replaceable(path). A new file takes the permissions of an old one; a link is itself replaced.
  explicit FileReplacement(std::filesystem::path path);
  ~FileReplacement();

  FileWriter& writer() { return writer_; }
  /// The file's name until `finish`.
  const std::filesystem::path& temporary() const { return temporary_; }
  /// Returns when the file is on the disk, under its temporary name; nothing may be written afterwards.
  void sync();
  /// Removes the old file, between `sync` and `finish`: for files that are replaced together.
  void remove_former() const;
  /// Returns when the file and its name are on the disk. A folder that cannot be synced is logged.
  void finish();
  /// Gives the file another name, in the same folder, and leaves the old file alone.
  void finish_as(const std::filesystem::path& name);

 private:
  void overwrite();

  std::filesystem::path path_, temporary_;
  FileWriter writer_;
  bool is_synced_ = false, is_finished_ = false;
};

/// Writes a file by FileReplacement; what is not replaceable, such as a pipe, is written to directly.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

/// A FileWriter that also computes the digest of what it writes.
class HashingFileWriter {
 public:
  explicit HashingFileWriter(const std::filesystem::path& file) : file_(file) {}

  void write(std::string_view bytes);
  /// Returns the digest when the file is on the disk; nothing may be written afterwards.
  FileDigest finish();

 private:
  FileWriter file_;
  uint64_t bytes_ = 0;
  ContentHash hash_;
};

/// Writes a file to the disk and returns its digest.
FileDigest write_durably(const std::filesystem::path& file, std::string_view bytes);

/// Makes changes of a folder's entries durable. Returns the error instead of throwing: the change itself stands.
std::error_code try_sync_folder(const std::filesystem::path& folder);
/// As try_sync_folder, but throws if that fails.
void sync_folder(const std::filesystem::path& folder);
/// As try_sync_folder, but logs a warning if that fails.
void sync_folder_or_warn(const std::filesystem::path& folder);
/// Returns when all that was written to the file, by whomever, is on the disk. Throws MachineError.
void sync_file(const std::filesystem::path& file);
/// Cuts zeros off the end of a text file, where a loss of power may leave them, and returns how many there were.
uint64_t drop_zeros_at_end(const std::filesystem::path& file);

/// Makes `link` point to `target` (relative to the link's folder) in one step, whatever it pointed to before.
void replace_link(const std::filesystem::path& link, const std::string& target);

/// Makes the folder in which `place` is to lie, and those around it, unless they are there.
void make_parent_of(const std::filesystem::path& place);

/// A folder written under a temporary name beside its final one, in a folder that is there: one that was removed, as a run's may be, does
/// not come again. `commit` syncs everything and renames it in one step; without it the
/// destructor removes the folder. A process may stage one folder at a time in each parent folder.
class StagedFolder {
 public:
  explicit StagedFolder(const std::filesystem::path& place);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::filesystem::path& path() const { return temporary_; }
  void commit();

 private:
  std::filesystem::path place_, temporary_;
  bool committed_ = false;
};

/// Removes a folder so that a crash never leaves half of it under its own name.
void remove_folder(const std::filesystem::path& folder);
/// Removes folders and links that crashed processes left half-written or half-removed in `parent`. For `patience` see
/// WriterProcess::is_gone.
void remove_leftovers(const std::filesystem::path& parent, std::chrono::seconds patience = std::chrono::hours(24));

}  // namespace lacuna
