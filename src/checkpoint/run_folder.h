#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "checkpoint/checkpoint.h"
#include "config/options.h"

/// The checkpoints of a run folder: `step_N/`, the links `best` and `last`, and `averaged/`.
namespace lacuna {

/// A `step_N` of a run.
struct RunCheckpoint {
  int64_t step = 0;
  std::string path;
  CheckpointInfo info;

  /// True if it was saved neither on schedule nor for a validation.
  bool is_of_interruption() const { return !info.is_scheduled && info.scores.empty(); }
};

/// Receives the error message of a damaged checkpoint.
using DamageHandler = std::function<void(const std::string&)>;

/// Returns the `step_N` folders of a run in ascending order of steps; none if the run folder does not exist. A damaged
/// checkpoint is a CheckpointError; with `on_damage`, it is reported there and left out.
std::vector<RunCheckpoint> checkpoints_of(const std::string& run, const DamageHandler& on_damage = {});

/// Returns the paths of all `step_N` in ascending order of steps, without opening any.
std::vector<std::string> checkpoint_paths_of(const std::string& run);
/// Returns the paths of folders `step_N` that are empty, and are no checkpoints for all other functions.
std::vector<std::string> empty_checkpoints_of(const std::string& run);
/// Returns the path of the `step_N` with the highest step without opening it; empty if there is none.
std::string newest_checkpoint_of(const std::string& run);

/// Returns the size in bytes of all `step_N` together.
uint64_t bytes_of_checkpoints(const std::string& run);

/// Returns the path RUN/step_N.
std::string checkpoint_path(const std::string& run, int64_t step);
/// Returns the path RUN/averaged.
std::string averaged_path(const std::string& run);

/// Makes RUN/`name` ("best", "last") a link to `step_N`. Where a run was copied with links followed, a folder stands
/// there: it is removed if it is a copy of one of the checkpoints; anything else is a CheckpointError.
void link_checkpoint(const std::string& run, const std::string& name, int64_t step);

/// Returns `path` itself if it is a checkpoint; for a run folder, its `averaged`, else `best`, else `last`. Throws
/// CheckpointError if `path` is neither, or does not exist.
std::string resolve_checkpoint(const std::string& path);
/// Returns a text that changes when another checkpoint stands at `path` or a run there has other checkpoints.
std::string standing_of(const std::string& path);

/// Returns read(), which reads the checkpoint or run at `path`. A run that trains removes and replaces its checkpoints: where that
/// has happened since, an error of reading does not count, and what stands there now is read.
template <class Read>
auto read_while_replaced(const std::string& path, const Read& read) {
  constexpr int kMostTries = 100;
  for (int tries = 1;; ++tries) {
    const std::string before = standing_of(path);
    try {
      return read();
    } catch (const std::exception&) {
      if (tries == kMostTries || standing_of(path) == before) throw;
    }
  }
}

/// Returns the checkpoint that translates the test sets of a run with these options: `averaged` if the run averages,
/// else `best`, else `last`, regardless of what an earlier start with other options has left in the folder.
std::string checkpoint_to_score(const Options& options);

/// Returns the checkpoints that have the score, best first and earlier first among equals; `lower_is_better` for
/// losses. `checkpoints` must be in ascending order of steps.
std::vector<RunCheckpoint> by_score(const std::vector<RunCheckpoint>& checkpoints, const std::string& score, bool lower_is_better);

/// Returns the last `count` scheduled checkpoints of a run in ascending order of steps. Throws CheckpointError if there
/// are none (naming an unscheduled one if the run has any), or if one is damaged; with `on_damage`, it is reported
/// there and not counted.
std::vector<std::string> last_checkpoints(const std::string& run, int64_t count, const DamageHandler& on_damage = {});
/// Returns the `count` best checkpoints of a run by one of their scores, best first. Throws CheckpointError if none has
/// that score.
std::vector<std::string> best_checkpoints(const std::string& run, int64_t count, const std::string& score, bool lower_is_better);

}  // namespace lacuna
