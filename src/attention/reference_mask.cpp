#include "attention/reference_mask.h"

#include <cmath>

#include "attention/types/calibrated.h"

namespace lacuna {
namespace {

using types::calibrated::Combine;

/// Of each row over the keys that the query sees: (queries, 1); 0 where it sees none.
Tensor mean_of(const Tensor& rows, const Tensor& visible) {
  return (rows * visible).sum(1, /*keepdim=*/true) / visible.sum(1, true).clamp_min(1);
}

/// A root whose gradient is 0 where the square is.
Tensor safe_root(const Tensor& square) {
  const Tensor is_zero = square.eq(0);
  return at::where(is_zero, at::zeros_like(square), at::where(is_zero, at::ones_like(square), square).sqrt());
}

MaskedWeights perturbed(const Tensor& base, const Tensor& mask, const Tensor& visible) {
  return {(mask * base + (1 - mask) * mean_of(base, visible)) * visible, mask, safe_root(mean_of((1 - mask).square(), visible)).squeeze(1),
          mean_of(mask, visible).squeeze(1)};
}

Tensor softmax_of_visible(const Tensor& rows, const Tensor& visible) {
  if (rows.size(1) == 0) return rows;
  const Tensor exponentials = (rows - rows.detach().amax(1, true)).exp() * visible;
  return exponentials / exponentials.sum(1, true).clamp_min(1e-30);
}

Tensor combined(const types::calibrated::Options& options, int64_t step, const Tensor& base, const Tensor& mask, const Tensor& visible,
                const Tensor& numbers) {
  const Tensor calibrated = base * (1 - mask).exp();
  switch (options.combine) {
    case Combine::kFixed:
      return softmax_of_visible(base + options.lambda * calibrated, visible);
    case Combine::kAnneal: {
      const double gamma = std::exp(-static_cast<double>(step) / static_cast<double>(options.anneal_steps));
      return gamma * base + (1 - gamma) * calibrated;
    }
    case Combine::kGate:
      break;
  }
  const Tensor gate = numbers.narrow(1, 0, 1).sigmoid();
  return gate * base + (1 - gate) * calibrated;
}

}  // namespace

MaskedWeights masked_weights(const AttentionType& type, const ForwardContext& context, const Tensor& base, const Tensor& mask_scores,
                             const Tensor& visible, const Tensor& numbers) {
  if (context.is_mask_pass()) return perturbed(base, mask_scores.sigmoid(), visible);
  const auto& options = *static_cast<const types::calibrated::Options*>(type.options());
  const Tensor mask = mask_scores.detach().sigmoid();
  return {combined(options, context.step, base, mask, visible, numbers), mask, Tensor(), Tensor()};
}

}  // namespace lacuna
