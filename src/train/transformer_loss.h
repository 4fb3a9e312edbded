#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/trainer.h"

namespace lacuna {

/// The loss of a Transformer on a batch, which is brought to `device`.
LossFunction transformer_loss(std::shared_ptr<Transformer> model, double label_smoothing, const std::string& device);

/// The model's parameters by name: what FlatParameters is made from.
std::vector<std::pair<std::string, Tensor>> trained_parameters(const Transformer& model);

}  // namespace lacuna
