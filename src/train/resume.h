#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/config_differences.h"
#include "config/options.h"
#include "train/optimizer.h"
#include "train/training_state.h"

namespace lacuna {

/// Where training goes on: a checkpoint with all it holds.
struct ResumePoint {
  std::string path;
  CheckpointContents checkpoint;
  Options options;  ///< of the checkpoint
  TrainingState state;
};

/// What differs between the configuration that a run folder holds and this one, but for what may differ when a run goes on: its length
/// where the learning rate does not depend on it, the frequency of validations, checkpoints and log lines, what is kept, threads, which
/// GPU, paths, data.src_lang, another spelling of the same attention, everything about translating, and, where train.reset holds "data",
/// how many corpora there are.
std::vector<ConfigDifference> forbidden_differences(const Options& stored, const Options& now);

/// Whether the run folder holds a run of another configuration, whose place this one is to take (RunReplacement): train.overwrite says so.
/// Throws ConfigError naming the keys that differ if it does not, and what require_start_outside throws. Writes nothing.
bool replaces_run(const Options& options);

/// The same; where the run that is there goes on, `options.train.batch_tokens` and `precision` that are `auto` become what was chosen when
/// it was new.
bool adopt_choices(Options& options);

/// Makes the run folder ready: a new one is made; in one of a run that goes on, `options.train.batch_tokens` and `precision` that are
/// `auto` become what was chosen when the run was new; one whose run is to be replaced stays as it is, until the new one is known to start.
/// Returns and throws what replaces_run does.
bool prepare_run_folder(Options& options);

/// The newest checkpoint of a run, to go on from; nothing if it has none. Throws CheckpointError if it is damaged.
std::optional<ResumePoint> find_resume_point(const std::string& run);

/// The checkpoint that `train.init_from` names, with its state as `train.reset` leaves it. Throws CheckpointError if parts that are not
/// reset are not there.
ResumePoint initial_point(const TrainOptions& options);

/// Begins the epoch of such a point anew, and the log says so, where its batches are not those of this configuration: another seed,
/// train.batch_tokens, data.max_length, data.long or weight of a corpus than in the checkpoint's own.
void fit_to_batches(ResumePoint& point, const Options& now);

/// Gives the point's weights to a model that may attend in another way than they were trained for: what its attention learns beside is
/// drawn, what the other learned is left out, and the log says so. Throws CheckpointError where the optimizer would go on with other
/// parameters, and what require_same_units throws. `reset` is train.reset.
void fit_to_attention(ResumePoint& point, const Transformer& model, const std::vector<std::string>& reset);

/// Puts weights, moving average and optimizer state in place. `reset` as in train.reset: where it holds "optimizer", the weights are those
/// that translate, and the moving average starts from them.
void restore(Optimizer& optimizer, const ResumePoint& point, const std::vector<std::string>& reset = {});

/// Notes the training corpora. Throws DataError if they are not those that `state` was trained on, unless `reset` holds "data": then its
/// position is the beginning of the new ones, and the log says so.
void fit_to_corpus(TrainingState& state, const std::string& fingerprint, const std::vector<std::string>& reset, const std::string& place);

/// Notes the first validation set, which decides. Where the scores of `state` are of another, their history begins anew, but for the
/// decreases of the learning rate, and the log says so.
void fit_to_validation_set(TrainingState& state, const std::string& fingerprint);

/// A sentence to say of scores that are kept, of translations that validation searches for otherwise from here on than the configuration of
/// `point` said; else empty.
std::string note_of_other_search(const ResumePoint& point, const Options& now);

}  // namespace lacuna
