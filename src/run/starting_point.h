#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/options.h"
#include "config/rules.h"
#include "data/training_data.h"
#include "model/transformer.h"
#include "train/resume.h"

namespace lacuna {

/// Finds what training starts from: the newest checkpoint of the run, unless it `starts_anew`, else train.init_from; nothing for the
/// beginning. Throws what find_resume_point, initial_point and fit_to_batches throw, and ConfigError if training would end there.
std::optional<ResumePoint> find_starting_point(const Options& options, bool starts_anew, const Rules& rules);

/// Returns the SentencePiece models of that point, with which training goes on whatever texts come now; nothing where the configuration
/// names vocabularies. Throws ConfigError for data.spm_symbols that they lack.
std::optional<Vocabularies> kept_vocabularies(const std::optional<ResumePoint>& point, const DataOptions& data, const Rules& rules);

/// Gives the point's weights, fitted to the model's attention (fit_to_attention), to `model`, and returns the state that training starts
/// with. Throws DataError or CheckpointError if the point's vocabularies, weights or corpora are not these; `reset` as in fit_to_corpus.
TrainingState start_from(ResumePoint& point, const TrainingData& data, Transformer& model, const std::vector<std::string>& reset);

/// Sets `train.warmup_steps` and `train.patience` where they are `auto`, for updates of `batches_per_update` batches; a point whose
/// learning rate goes on keeps its warm-up.
void choose_schedule(Options& options, const TrainingData& data, int64_t batches_per_update, const std::optional<ResumePoint>& point);

/// Updates of an epoch, on average: a batch may be split over epochs.
double updates_per_epoch(int64_t batches_per_update, const TrainingData& data);

}  // namespace lacuna
