#pragma once

#include "kernels/dropout.h"

namespace lacuna {

inline constexpr double kLayerNormEpsilon = 1e-5, kRmsNormEpsilon = 1e-6;

/// What a norm of rows is: LayerNorm gain * (z - mean) / sqrt(variance + 1e-5) + bias (Ba et al. 2016, arXiv:1607.06450), or
/// RMSNorm gain * z / sqrt(mean(z^2) + 1e-6) (Zhang & Sennrich 2019, arXiv:1910.07467).
struct NormWeights {
  Tensor gain;  ///< [D]
  Tensor bias;  ///< [D]; undefined for RMSNorm
  bool is_rms = false;
};

struct ResidualNorm {
  Tensor sum;     ///< residual + dropout(output)
  Tensor normed;  ///< norm(sum)
};

/// The residual connection and the norm after it, in one pass. All [T, D]; `output` undefined = only the norm of `residual`.
ResidualNorm residual_norm(const Tensor& residual, const Tensor& output, const Dropout& dropout, const NormWeights& norm);

}  // namespace lacuna
