#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

/// The checkpoints of a run folder: `step_N/`, the links `best` and `last`, and `averaged/`.
namespace lacuna {

struct RunCheckpoint {
  int64_t step = 0;
  std::string path;
  CheckpointInfo info;
};

/// The `step_N` folders of a run, by rising step. Empty if the folder is not there. Throws CheckpointError if one is damaged, unless there
/// is somebody to tell what that error says: then the others are given.
std::vector<RunCheckpoint> checkpoints_of(const std::string& run, const std::function<void(const std::string&)>& on_damage = {});

/// Their paths by rising step, by name alone: none is opened.
std::vector<std::string> checkpoint_paths_of(const std::string& run);
/// The newest `step_N`, by name alone; empty if there is none.
std::string newest_checkpoint_of(const std::string& run);

/// RUN/step_N
std::string checkpoint_path(const std::string& run, int64_t step);

/// `path` itself if it is a checkpoint; of a run folder its `averaged`, else `best`, else `last`. Throws CheckpointError if it is neither.
std::string resolve_checkpoint(const std::string& path);

/// Of the run's scheduled checkpoints, by rising step, the last `count`. Throws CheckpointError if there are none.
std::vector<std::string> last_checkpoints(const std::string& run, int64_t count);
/// The `count` best by one of their scores, the best first; `lower_is_better` for losses. Throws CheckpointError if none has that score.
std::vector<std::string> best_checkpoints(const std::string& run, int64_t count, const std::string& score, bool lower_is_better);

}  // namespace lacuna
