#pragma once

#include <string>

#include "base/durable_files.h"
#include "config/options.h"

namespace lacuna {

/// Throws ConfigError if the folder holds no run, but a file under a name that training writes to or deletes.
void require_room_for_run(const std::string& run);

/// Throws ConfigError naming the key if a run that replaces the one in its folder would read a file that is deleted
/// with that one: a checkpoint, a SentencePiece model, a vocabulary or a corpus.
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
