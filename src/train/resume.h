#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "config/config_node.h"
#include "config/options.h"
#include "train/optimizer.h"
#include "train/training_state.h"

namespace lacuna {

/// A checkpoint from which training resumes, with all that it holds.
struct ResumePoint {
  std::string path;
  CheckpointContents checkpoint;
  Options options;  ///< the checkpoint's configuration
  TrainingState state;
  std::vector<std::string> damaged;  ///< newer checkpoints of the run, which are damaged
};

/// Returns the differences between a run's configuration and this one that forbid resuming. The run's length may differ
/// where the learning rate does not depend on it, and so may validations, checkpoints, logs, threads, paths,
/// translating, another spelling of the same attention and, where train.reset holds "data", the number of corpora.
std::vector<ConfigDifference> forbidden_differences(const Options& stored, const Options& now);

/// Returns true if the folder holds a run of another configuration that train.overwrite allows to replace. Throws
/// ConfigError naming the keys that differ if it does not, and what require_start_outside throws. Writes nothing.
bool replaces_run(const Options& options);

/// Returns and throws what replaces_run does. If the run resumes, `auto` in `options.train` becomes what was chosen.
bool adopt_choices(Options& options);

/// Removes leftovers in the run folder, which is there and locked, then does what adopt_choices does.
bool prepare_run_folder(Options& options);

/// Returns the newest whole checkpoint of a run; nothing if it has none. Newer ones that are damaged are logged. Throws
/// CheckpointError if the newest is damaged and no other holds what training needs to go on.
std::optional<ResumePoint> find_resume_point(const std::string& run);

/// Renames a checkpoint that is damaged, so that it counts no more, and returns its new path.
std::string set_aside(const std::string& checkpoint);

/// Returns the newest checkpoint of a run, but for those of interruptions, with trainer state and fewer updates of the optimizer than
/// `optimizer_updates`: there its gradients were finite. Damaged ones are logged and passed over.
std::optional<ResumePoint> find_point_to_go_back_to(const std::string& run, int64_t optimizer_updates);

/// Returns the checkpoint that `train.init_from` names, with the parts of its state that `train.reset` does not reset.
/// Throws CheckpointError if one of these is missing.
ResumePoint initial_point(const TrainOptions& options);

/// Restarts the epoch of an initial point, with a warning, where its batches are not those of this configuration.
void fit_to_batches(ResumePoint& point, const Options& now);

/// Fits the point's weights to a model whose attention may be of another type than they were trained with: draws
/// missing parameters of attention, drops superfluous ones, and logs both. Throws CheckpointError where the optimizer's
/// state would not fit, and what require_same_units throws. `reset` is train.reset.
void fit_to_attention(ResumePoint& point, const Transformer& model, const std::vector<std::string>& reset);

/// Loads weights, moving average and optimizer state. `reset` is train.reset: where it holds "optimizer", the weights
/// are those that translate, and the moving average starts from them.
void restore(Optimizer& optimizer, const ResumePoint& point, const std::vector<std::string>& reset = {});

/// Records the fingerprint of the training corpora. Throws DataError if `state` was trained on others, unless `reset`
/// holds "data": then its position becomes the beginning of the new ones, with a warning.
void fit_to_corpus(TrainingState& state, const std::string& fingerprint, const std::vector<std::string>& reset, const std::string& place);

/// Records the fingerprint of the first validation set, whose scores decide. Where the scores of `state` are of another
/// set, restarts their history, all but the decreases of the learning rate, with a warning.
void fit_to_validation_set(TrainingState& state, const std::string& fingerprint);

/// Returns a sentence for the log if a model of these options computes something else of the point's weights than it did there, as its
/// activation, norms, positions or heads are others; else an empty string.
std::string note_of_other_model(const ResumePoint& point, const ModelOptions& now);

/// Returns a sentence for the log if scores are kept, but validation now searches otherwise; else an empty string.
std::string note_of_other_search(const ResumePoint& point, const Options& now);

}  // namespace lacuna
