#pragma once

#include <cstdint>
#include <future>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/run_folder.h"
#include "config/options.h"
#include "train/optimizer.h"
#include "train/trainer.h"

namespace lacuna {

/// Which of a run's checkpoints (by rising step) stay: the newest, the last `keep_last` (or `average_last`) of the scheduled ones, and the
/// `keep_best` best by `metric`.
std::set<int64_t> steps_to_keep(const std::vector<RunCheckpoint>& checkpoints, const TrainOptions& options);

/// Writes a run's checkpoints, and keeps its folder in order: links `last` and `best` (of those that stay), superfluous checkpoints
/// removed, trainer state in the newest only.
class CheckpointKeeper {
 public:
  CheckpointKeeper(std::string run, const TrainOptions& options, std::string config_yaml, Vocabularies vocabularies,
                   const Optimizer& optimizer);
  /// Waits; what could not be written is logged.
  ~CheckpointKeeper();
  CheckpointKeeper(const CheckpointKeeper&) = delete;
  CheckpointKeeper& operator=(const CheckpointKeeper&) = delete;

  /// Copies everything and returns; a thread of its own writes it. Until it has, the copy needs the memory of a checkpoint. Waits first
  /// until the checkpoint before is written.
  void save(const TrainingState& state, const Scores& scores, bool is_scheduled);
  /// Throws what the writing of a checkpoint threw, if it has come to an end.
  void check();
  /// The same, once it has: then all that was saved is on the disk.
  void wait();
  /// Brings the folder in order after a crash: half-written folders, links. Damaged checkpoints are logged and left alone. Waits first.
  void tidy();
  /// Bytes of a checkpoint with trainer state.
  uint64_t checkpoint_bytes() const;
  /// Bytes of all that stays of a run that is long enough: with `averaged`, and trainer state in one.
  uint64_t run_bytes() const;
  /// Throws MachineError unless the disk has room for two checkpoints beside those that are there, of which `to_be_freed` bytes go first.
  /// The folder need not be there yet.
  void require_disk_room(uint64_t to_be_freed = 0) const;

 private:
  void bring_in_order() const;
  uint64_t weight_bytes() const;

  std::string run_;
  TrainOptions options_;
  std::string config_yaml_;
  Vocabularies vocabularies_;
  const Optimizer& optimizer_;
  std::future<void> writing_;
};

}  // namespace lacuna
