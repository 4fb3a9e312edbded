#pragma once

#include <torch/nn/module.h>

#include <memory>

#include "attention/attention.h"
#include "model/auxiliary_loss.h"

namespace lacuna {

/// The training of all mask models of `model`, whose attention is `plan`; null if it has none. The model must outlive
/// it.
std::unique_ptr<AuxiliaryLoss> make_mask_loss(const AttentionPlan& plan, torch::nn::Module& model);

/// True for the parameters of mask models, by their names.
bool is_mask_parameter(const std::string& name);

}  // namespace lacuna
