#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lacuna {

using at::Tensor;

/// What the masks of one mask pass come to, attention by attention. Hung on ForwardContext::masks.
struct MaskPass {
  /// distance [Tq, H]: of each row |1 - m| / sqrt(n) over its n keys, with gradients; mean [Tq, H]: the row's mean of m.
  void add(const Tensor& distance, const Tensor& mean, double penalty);
  /// penalty * distance, averaged over queries, heads and attentions: a scalar of double, with gradients.
  Tensor penalty() const;
  /// m, averaged likewise.
  Tensor mean() const;

 private:
  std::vector<Tensor> penalties_, means_;  // a scalar for each attention
};

}  // namespace lacuna
