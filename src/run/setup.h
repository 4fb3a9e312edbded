#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/configuration.h"
#include "data/evaluation_set.h"
#include "data/training_data.h"
#include "model/transformer.h"
#include "run/validation.h"
#include "train/optimizer.h"
#include "train/run_takeover.h"
#include "train/training_state.h"

namespace lacuna {

/// Everything that a configuration of `lacuna train` names, put together, and standing where its run folder stands.
struct RunSetup {
  Options options;  ///< with what was chosen for each `auto`
  std::unique_ptr<RunLock> lock;
  std::unique_ptr<RunReplacement> replacement;    ///< of the run in the folder, until it has taken its place; else null
  std::optional<Vocabularies> kept_vocabularies;  ///< of the checkpoint that training starts from
  TrainingData data;
  std::shared_ptr<Transformer> model;
  std::unique_ptr<Optimizer> optimizer;
  TrainingState state;  ///< where training starts
  bool is_resumed = false;
  std::vector<EvaluationSet> validation_sets, test_sets;
  std::unique_ptr<Validator> validator;

  /// The folder that files are written to: the run folder, once no other run is in it.
  std::string folder() const { return replacement ? replacement->folder() : options.run; }
};

/// Locks the run folder, reads the data, makes the model, and finds where to go on. Throws what any of it finds wrong, before anything is
/// trained.
RunSetup set_up_run(const Configuration& given);

/// Logs what is going to be trained: sizes, device, batches, an epoch, and what a person should know of its length.
void log_setup(const RunSetup& run);

}  // namespace lacuna
