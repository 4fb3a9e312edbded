#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/trainer.h"

namespace lacuna {

/// `train.precision` with `auto` decided: bf16 on a GPU and on a CPU that has instructions for it, fp32 elsewhere.
Precision decided_precision(Precision wanted, const std::string& device);

/// What that makes of the factors of matrix products: bf16x3 is fp32 on other devices, and where the processor has no tiles.
FactorPrecision factor_precision(const TrainOptions& options, const std::string& device);

/// The loss of a Transformer on a batch, which is brought to `device`. Label smoothing and precision are those of `options`; precision
/// counts in training only: validation is in fp32 always.
LossFunction transformer_loss(std::shared_ptr<Transformer> model, const TrainOptions& options, const std::string& device);

/// The model's parameters by name: what FlatParameters is made from.
std::vector<std::pair<std::string, Tensor>> trained_parameters(const Transformer& model);

}  // namespace lacuna
