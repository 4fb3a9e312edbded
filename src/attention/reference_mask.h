#pragma once

#include <ATen/core/Tensor.h>

#include "attention/registry.h"
#include "base/forward_context.h"

namespace lacuna {

using at::Tensor;

/// Weights and the mask, (queries, keys); in the mask pass also |1 - m| / sqrt(n) and the mean of m over the n keys that each query sees,
/// (queries).
struct MaskedWeights {
  Tensor weights, mask, distance, mean;
};

/// What a type with a mask makes of its base's weights and the mask's scores, in ATen operations. Both are (queries, keys), like `visible`,
/// which is 1 where a query sees a key and else 0; numbers (queries, n) are the type's own, without the base's.
MaskedWeights masked_weights(const AttentionType& type, const ForwardContext& context, const Tensor& base, const Tensor& mask_scores,
                             const Tensor& visible, const Tensor& numbers);

}  // namespace lacuna
