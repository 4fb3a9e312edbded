#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/options.h"
#include "config/rules.h"
#include "data/evaluation_set.h"
#include "data/training_data.h"
#include "metrics/sacrebleu.h"
#include "model/transformer.h"
#include "train/resume.h"
#include "train/trainer.h"

/// What a run of `lacuna train` meets before its first update, for `lacuna check` too. `rules` know where the configuration's keys stand: a
/// ConfigError begins with the place of the one that it is about.
namespace lacuna {

/// What keeps training from starting and shows before anything is made, by configuration and files alone. Throws ConfigError for a run
/// folder that is not named or cannot be, learned positions that end before the longest sentence, learning rates that no training wants,
/// names of corpora that lead out of the run folder and a target language that is no code; MachineError if nothing can be written to the
/// run folder; and what replaces_run and require_sets throw.
void require_trainable(const Options& options, const Rules& rules);

/// Throws ConfigError if `train.batch_tokens` is `auto` and the memory is not the CPU's.
void require_measurable_memory(const Options& options, const Rules& rules);

/// Throws MachineError if the CPU's free memory does not hold what a model of these sizes takes without any batch: weights, their gradients
/// and Adam's two means. To be called before the model is made; of attention's own parameters and of biases it knows nothing.
void require_memory_for_model(const Options& options, const VocabularySizes& sizes);

/// Throws DataError if a file of data.train, valid or test cannot be read, or if a set to score has a fault, and ConfigError if two sets to
/// score have the same name: both before long work on the first of them.
void require_sets(const DataOptions& data, const Rules& rules);

/// What training starts from: the newest checkpoint of the run, unless it is to be replaced (`starts_anew`), else the one that
/// `train.init_from` names; nothing for the beginning. Throws what find_resume_point, initial_point and fit_to_batches throw, and
/// ConfigError if training would end where init_from stands.
std::optional<ResumePoint> find_starting_point(const Options& options, bool starts_anew, const Rules& rules);

/// The SentencePiece models of that point, with which training goes on whatever texts come now; nothing where the configuration names
/// vocabularies. Throws ConfigError for data.spm_symbols that they lack.
std::optional<Vocabularies> vocabularies_kept(const std::optional<ResumePoint>& point, const DataOptions& data, const Rules& rules);

/// The state that training starts with, the model having the point's weights, which are fitted to its attention (fit_to_attention). Throws
/// DataError or CheckpointError if its vocabularies, weights or corpora are not these; `reset` as in fit_to_corpus.
TrainingState start_from(ResumePoint& point, const TrainingData& data, Transformer& model, const std::vector<std::string>& reset);

/// Throws what load_evaluation_set throws.
std::vector<EvaluationSet> load_evaluation_sets(const std::vector<CorpusOptions>& corpora, const DataOptions& options,
                                                const TrainingData& data);

/// sacreBLEU, if validation or test sets are translated. Throws what find_sacrebleu and require_tokenizer throw.
std::optional<Scorer> find_scorer(const Options& options);

/// A sentence to say of training that nothing but an interruption ends; else empty.
std::string note_of_no_end(const TrainOptions& train);

/// A sentence to say of training without a validation set: what it does not have; else empty.
std::string note_of_no_validation(const DataOptions& data);

/// A sentence to say of training from `start` on that ends before its warm-up does; else empty.
std::string note_of_warmup(const TrainOptions& train, double updates_per_epoch, const TrainingState& start);

/// Why training ends, or would end, at `state`.
std::string in_words(TrainingEnd end, const TrainingState& state, const TrainOptions& options);

}  // namespace lacuna
