#pragma once

#include <string>

#include "config/options.h"
#include "train/trainer.h"

/// Sentences about the length of a run, for the log of `lacuna train` and for `lacuna check`.
namespace lacuna {

/// Warns of training that nothing but an interruption ends; else empty.
std::string warning_of_no_end(const TrainOptions& train);

/// Says what training without a validation set lacks; empty if there is one.
std::string warning_of_no_validation(const DataOptions& data);

/// Warns of training from `start` on that ends before its warm-up does; else empty.
std::string warning_of_warmup(const TrainOptions& train, double updates_per_epoch, const TrainingState& start);

/// Says why training ends, or would end, at `state`: "4 of 4 epochs (train.max_epochs)".
std::string end_text(TrainingEnd end, const TrainingState& state, const TrainOptions& options);

}  // namespace lacuna
