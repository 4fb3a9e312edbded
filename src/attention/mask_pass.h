#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lacuna {

using at::Tensor;

/// Collects the masks' penalty and mean in one mask pass, attention by attention. ForwardContext::masks points to one.
struct MaskPass {
  /// distance [Tq, H]: of each row |1 - m| / sqrt(n) over its n keys, with gradients; mean [Tq, H]: the row's mean of m.
  void add(const Tensor& distance, const Tensor& mean, double penalty);
  /// penalty * distance, averaged over queries, heads and attentions: a scalar of double, with gradients.
  Tensor penalty() const;
  /// The mean of m over queries, heads and attentions: a scalar of double.
  Tensor mean() const;

 private:
  std::vector<Tensor> penalties_, means_;  // a scalar for each attention
};

}  // namespace lacuna
