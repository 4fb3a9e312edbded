#pragma once

#include "base/activation.h"
#include "base/precision.h"
#include "kernels/residual_norm.h"

/// Layers with gradients.
namespace lacuna {

/// Returns x [T, K] x weight [N, K]^T + bias [N] -> [T, N], with gradients. `bias` may be undefined.
///
/// `precision` is that of this product and of its gradients' two, if the weight is float. With kBf16, x may be bf16
/// already (then its gradient is, too), and with `is_rounded` the result is bf16. `source` is what a norm computed x
/// from, so that the backward pass can compute x again; null = x is kept.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Precision precision = Precision::kFp32, bool is_rounded = false,
              const NormSource* source = nullptr);

/// The parameters of a linear layer x weight^T + bias: weight [N, K], bias [N].
struct LinearWeights {
  Tensor weight, bias;
};

/// Returns dropout(f(x)), where f is the activation. x [T, F].
Tensor activation_dropout(const Tensor& x, Activation activation, const Dropout& dropout);

// Sub-layers that end in a linear layer, with gradients: the residual connection and the norm are applied to each block
// of rows of its product while the block is in the cache. `precision` is that of the factors of all products, if x is
// float. With kBf16, x may be bf16 already; then so is its gradient.

/// Returns residual_norm(end, x weight^T + bias).
ResidualNorm linear_to_residual(const Tensor& x, const LinearWeights& weights, const ResidualEnd& end,
                                Precision precision = Precision::kFp32);

/// A feed-forward network outer(dropout(f(inner(x)))), where f is the activation.
struct FeedForwardLayer {
  LinearWeights inner, outer;
  Activation activation = Activation::kRelu;
  Dropout dropout;
};

/// Returns residual_norm(end, layer(x)). The activation and its gradient are computed on blocks of rows of the
/// products, and with kBf16 rounded there. `source`: what a norm computed x from, so that the backward pass can compute
/// x again; null = x is kept.
ResidualNorm feed_forward(const Tensor& x, const FeedForwardLayer& layer, const ResidualEnd& end, Precision precision = Precision::kFp32,
                          const NormSource* source = nullptr);

}  // namespace lacuna
