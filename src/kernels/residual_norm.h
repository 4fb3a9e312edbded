#pragma once

#include "base/precision.h"
#include "kernels/dropout.h"

namespace lacuna {

inline constexpr double kLayerNormEpsilon = 1e-5, kRmsNormEpsilon = 1e-6;

/// The parameters of a norm of rows: LayerNorm gain * (z - mean) / sqrt(variance + epsilon) + bias (Ba et al. 2016,
/// arXiv:1607.06450), or RMSNorm gain * z / sqrt(mean(z^2) + epsilon) (Zhang & Sennrich 2019, arXiv:1910.07467).
struct NormWeights {
  Tensor gain;  ///< [D]
  Tensor bias;  ///< [D]; undefined for RMSNorm
  bool is_rms = false;
  double given_epsilon = 0;  ///< 0 = kLayerNormEpsilon or kRmsNormEpsilon

  double epsilon() const {
    if (given_epsilon > 0) return given_epsilon;
    return is_rms ? kRmsNormEpsilon : kLayerNormEpsilon;
  }
};

/// The input of a norm. A layer that reads the normed rows can compute them from it again, and need not keep them for
/// its backward pass.
struct NormSource {
  Tensor sum;  ///< [T, D]
  NormWeights norm;
};

struct ResidualNorm {
  Tensor sum;     ///< residual + dropout(output)
  Tensor normed;  ///< norm(sum)
};

/// The destination of a sub-layer's output: the residual stream that it is added to, and the norm that comes next.
struct ResidualEnd {
  Tensor residual;  ///< [T, D]
  Dropout dropout;  ///< of the sub-layer's output
  NormWeights norm;
  /// The precision of the products that read the normed rows; other than kFp32 only if nothing else reads them. With
  /// kBf16 and gradients, normed rows of float are returned in bf16 where there are kernels (on the CPU, on a GPU), and
  /// so is their gradient; without gradients, on a GPU.
  Precision readers = Precision::kFp32;
};

/// Applies the residual connection and the norm after it in one pass over memory. `output` [T, D]; undefined = only the
/// norm of the residual.
ResidualNorm residual_norm(const ResidualEnd& end, const Tensor& output);

/// Does that for rows [rows, D] of float on the CPU, without dropout and gradients: writes their sums and normed rows. `output` may be
/// null; then nothing is written to `sum`.
void residual_norm(const NormWeights& norm, int64_t rows, const float* residual, const float* output, float* sum, float* normed);

}  // namespace lacuna
