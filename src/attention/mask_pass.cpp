#include "attention/mask_pass.h"

namespace lacuna {

void MaskPass::add(const Tensor& distance, const Tensor& mean, double penalty) {
  penalties_.push_back(distance.mean(at::kDouble) * penalty);
  means_.push_back(mean.detach().mean(at::kDouble));
}

Tensor MaskPass::penalty() const {
  return at::stack(penalties_).mean();
}

Tensor MaskPass::mean() const {
  return at::stack(means_).mean();
}

}  // namespace lacuna
