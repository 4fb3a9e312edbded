#pragma once

#include <memory>
#include <string>

#include "train/trainer.h"

namespace lacuna {

/// The loss of a Transformer on a batch, which is brought to `device`.
LossFunction transformer_loss(std::shared_ptr<Transformer> model, double label_smoothing, const std::string& device);

}  // namespace lacuna
