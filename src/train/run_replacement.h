#pragma once

#include <string>

#include "checkpoint/durable_files.h"
#include "config/options.h"

namespace lacuna {

/// Throws ConfigError if the folder holds no run, but something under a name that training writes to, or removes.
void require_room_for_run(const std::string& run);

/// Throws ConfigError naming the key if a run that is to take the place of the one in its folder would start from what goes with that one:
/// a checkpoint, a SentencePiece model or a vocabulary.
void require_start_outside(const Options& options);

/// A run that takes the place of the one in its folder. Until then that one stays whole, and this one writes to a folder of its own in
/// there, which goes with the object.
class RunReplacement {
 public:
  /// Makes the folder. Throws MachineError if that fails.
  explicit RunReplacement(const Options& options);

  /// Where vocabularies, token cache and log are until then.
  std::string folder() const { return making_.path().string(); }
  /// Removes what the other run has written, and nothing else, and gives what this one has written its place. Throws MachineError.
  void take_place() const;

 private:
  std::string run_, cache_;   ///< cache_: as named; it stays, being this run's too
  FolderInTheMaking making_;  ///< never committed: what is in it moves one by one
};

}  // namespace lacuna
