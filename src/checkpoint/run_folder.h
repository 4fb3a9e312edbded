#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "config/options.h"

/// The checkpoints of a run folder: `step_N/`, the links `best` and `last`, and `averaged/`.
namespace lacuna {

struct RunCheckpoint {
  int64_t step = 0;
  std::string path;
  CheckpointInfo info;
};

/// Is told what the error of a damaged checkpoint says.
using DamageHandler = std::function<void(const std::string&)>;

/// The `step_N` folders of a run, by rising step. Empty if the folder is not there. Throws CheckpointError if one is damaged, unless there
/// is somebody to tell: then the others are given.
std::vector<RunCheckpoint> checkpoints_of(const std::string& run, const DamageHandler& on_damage = {});

/// Their paths by rising step, by name alone: none is opened.
std::vector<std::string> checkpoint_paths_of(const std::string& run);
/// The newest `step_N`, by name alone; empty if there is none.
std::string newest_checkpoint_of(const std::string& run);

/// Bytes of all `step_N`.
uint64_t bytes_of_checkpoints(const std::string& run);

/// RUN/step_N
std::string checkpoint_path(const std::string& run, int64_t step);
/// RUN/averaged
std::string averaged_path(const std::string& run);

/// Makes RUN/`name` ("best", "last") a link to `step_N`. A copy of the run in which links were followed has a folder there: it goes if it
/// is one of the checkpoints once more, and is a CheckpointError if it is anything else.
void link_checkpoint(const std::string& run, const std::string& name, int64_t step);

/// `path` itself if it is a checkpoint; of a run folder its `averaged`, else `best`, else `last`. Throws CheckpointError if it is neither,
/// or not there.
std::string resolve_checkpoint(const std::string& path);
/// What translates the test sets of a run of these options: its `averaged` if it averages, else `best`, else `last`, whatever an earlier
/// start with others has left.
std::string checkpoint_to_score(const Options& options);

/// Those that have the score, the best first, of equals the earlier; `lower_is_better` for losses. `checkpoints` are by rising step.
std::vector<RunCheckpoint> by_score(const std::vector<RunCheckpoint>& checkpoints, const std::string& score, bool lower_is_better);

/// Of the run's scheduled checkpoints, by rising step, the last `count`. Throws CheckpointError if there are none, naming another that
/// is there, or if one of them is damaged, unless there is somebody to tell: then it does not count.
std::vector<std::string> last_checkpoints(const std::string& run, int64_t count, const DamageHandler& on_damage = {});
/// The `count` best by one of their scores, the best first. Throws CheckpointError if none has that score.
std::vector<std::string> best_checkpoints(const std::string& run, int64_t count, const std::string& score, bool lower_is_better);

}  // namespace lacuna
