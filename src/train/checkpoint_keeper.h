#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/run_folder.h"
#include "config/options.h"
#include "ranks/group.h"
#include "train/optimizer.h"
#include "train/trainer.h"

namespace lacuna {

/// Returns the steps of a run's checkpoints (sorted by step) that are not to be deleted: the newest, the last
/// `keep_last` (or `average_last`) of the scheduled ones, and the `keep_best` best by `metric`.
std::set<int64_t> steps_to_keep(const std::vector<RunCheckpoint>& checkpoints, const TrainOptions& options);

/// Writes a run's checkpoints in the background and maintains its folder: links, and what the options do not keep. Rank 0 writes; save()
/// and wait() are collective, and throw at all ranks what keeps it from writing.
///
/// A checkpoint is written once its weights have proved good: after the next update that was not left out, or at the end.
/// So nothing that training may have to go back from takes the place of a good one.
class CheckpointKeeper {
 public:
  /// `require_place` is called before a checkpoint is written, and before it takes its name: it throws if the run folder is not there any
  /// more, or another start's.
  CheckpointKeeper(
      std::string run, const TrainOptions& options, std::string config_yaml, Vocabularies vocabularies, const Optimizer& optimizer,
      std::function<void()> require_place = [] {}, Group& group = no_group());
  /// Waits for the checkpoint being written; logs an error if that fails.
  ~CheckpointKeeper();

  /// Copies weights and state and returns; a background thread, after any earlier one, writes the copy once it has
  /// proved good. Throws DivergedError if they hold values that are not finite.
  void save(const TrainingState& state, const Scores& scores, bool is_scheduled);
  /// Says that the weights saved last have proved good.
  void confirm();
  /// Drops what was saved and has not proved good.
  void drop_unproved() { unproved_.reset(); }
  /// Rethrows an error of the background thread, if it has finished.
  void check();
  /// Waits for the background thread and rethrows its error: afterwards all that was saved is on the disk. If training `goes_on`, from an
  /// earlier checkpoint or in a later start, the one before a checkpoint that has not proved good stays, with its trainer state.
  void wait(bool goes_on = false);
  /// Waits, then repairs the folder after a crash. Damaged checkpoints are logged and left alone. For rank 0 alone.
  void tidy();
  /// Returns the size of a checkpoint with trainer state, in bytes.
  uint64_t checkpoint_bytes() const { return (optimizer_.has_ema() ? 4 : 3) * weight_bytes(); }
  /// Returns the size of all that a finished run keeps, in bytes: with `averaged`, and trainer state in one checkpoint.
  uint64_t run_bytes() const;
  /// Throws MachineError unless the disk has room for two more checkpoints once `to_be_freed` bytes are deleted.
  void require_disk_room(uint64_t to_be_freed = 0) const;

 private:
  /// Deletes half-written folders and checkpoints that are not kept, updates the links `last` and `best`, and removes
  /// trainer state from all but the newest checkpoint and those to which training can go back.
  void update_folder(bool is_proved) const;
  uint64_t weight_bytes() const;
  void keep(const TrainingState& state, const Scores& scores, bool is_scheduled, const NamedTensors& average, const NamedTensors& moments);
  void write(bool is_proved);
  void finish_writing(bool goes_on);

  std::string run_;
  TrainOptions options_;
  std::string config_yaml_;
  Vocabularies vocabularies_;
  const Optimizer& optimizer_;
  std::function<void()> require_place_;
  Group& group_;
  struct Saved {
    std::string path;
    CheckpointContents contents;
  };
  std::optional<Saved> unproved_;  ///< its contents at rank 0 alone, but for `info`
  std::future<void> writing_;
};

}  // namespace lacuna
