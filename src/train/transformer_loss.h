#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/trainer.h"

namespace lacuna {

/// Returns the loss function of a Transformer, which copies a batch to `device`. Label smoothing and precision
/// (model/precision.h) are those of `options`; validation is in fp32 always.
LossFunction transformer_loss(std::shared_ptr<Transformer> model, const TrainOptions& options, const std::string& device);

/// Returns the model's parameters: the group `main`, and the group `auxiliary` of those that its auxiliary loss trains,
/// if it has one.
std::vector<ParameterGroup> trained_parameters(const Transformer& model);

}  // namespace lacuna
