#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/durable_files.h"
#include "base/file_lock.h"
#include "config/options.h"

/// Taking a run's folder: its lock, and the replacement of a run that is in it.
namespace lacuna {

/// Locks a run folder, or an ablation's, against other processes for as long as the object lives.
class RunLock {
 public:
  /// Creates the folder if it does not exist, and waits for another process that holds the lock. Throws MachineError if
  /// the folder cannot be created, DataError if it holds what is neither a file nor a folder, ConfigError if the other process takes longer
  /// than `patience` and than two seconds, and Interrupted.
  explicit RunLock(const std::string& run, std::chrono::duration<double> patience = {});

  /// Throws MachineError once the folder is not there any more, or is another, or another start works in it, though this process has not
  /// ended: to be called before anything is written, which would else make the folder anew, without its lock, or undo the other's work.
  void require_in_place() const;
  /// Returns a function that says whether no other start works in the folder. It may outlive the lock.
  std::function<bool()> is_alone_there() const;
  /// Returns what the lock's file holds for as long as this process has the folder: a text of no other start.
  const std::string& start() const { return start_; }

 private:
  std::string run_, start_;
  FileLock lock_;
  bool is_written_ = false;  ///< false where the file belongs to another user
};

/// Returns true if the lock's file in the folder `run` holds `start`: the folder is the one that the process of that RunLock works in.
bool is_folder_of(const std::string& start, const std::string& run);

/// Throws ConfigError if the folder holds no run, but a file under a name that training writes to or deletes.
void require_room_for_run(const std::string& run);

/// Throws ConfigError naming the key if a replacing run would read a file that is deleted with the run in its folder.
void require_start_outside(const Options& options);

/// Replaces the run in a folder. Until take_place() the old run stays whole, and the new one writes to a subfolder,
/// which is deleted with the object.
class RunReplacement {
 public:
  /// Creates the subfolder. Throws MachineError if that fails.
  explicit RunReplacement(const Options& options);

  /// Returns the subfolder, for vocabularies, token cache and log.
  std::string folder() const { return staged_.path().string(); }
  /// Deletes what the old run has written, and nothing else, and moves the subfolder's files into its place. Throws
  /// MachineError.
  void take_place() const;

 private:
  std::string run_, cache_;  ///< cache_: data.cache; it is kept, as the new run uses it too
  StagedFolder staged_;      ///< never committed: its files are moved one by one
};

}  // namespace lacuna
