#pragma once

#include "config/options.h"
#include "config/rules.h"
#include "model/transformer.h"
#include "text/vocabulary.h"

/// What a run needs before its first update, checked by `lacuna train` and `lacuna check`. `rules` know where the configuration's keys
/// stand: a ConfigError begins with the place of the key that it is about.
namespace lacuna {

/// Checks everything that shows before anything is made, by configuration and files alone. Throws ConfigError for a bad run folder, learned
/// positions that end before the longest sentence, learning rates that no training wants, bad names of corpora and a target language that
/// is no code; MachineError if nothing can be written to the run folder; and what replaces_run and require_sets throw.
void require_trainable(const Options& options, const Rules& rules);

/// Throws ConfigError if `train.batch_tokens` is `auto` and the memory is not the CPU's.
void require_measurable_memory(const Options& options, const Rules& rules);

/// Throws MachineError if the CPU's free memory does not hold what a model of these sizes takes without any batch: weights, their gradients
/// and Adam's two means. To be called before the model is made. Attention's own parameters and biases are not counted. `processes` share
/// the memory.
void require_memory_for_model(const Options& options, const VocabularySizes& sizes, int64_t processes = 1);

/// Throws DataError if a file of data.train, valid or test cannot be read, or if a set to score has a fault, and ConfigError if two sets to
/// score have the same name: both before long work on the first of them.
void require_sets(const DataOptions& data, const Rules& rules);

}  // namespace lacuna
