#pragma once

#include "kernels/dropout.h"

namespace lacuna {

/// dropout(max(x, 0)), or with `is_gelu` dropout(x Phi(x)), Phi the normal distribution function (Hendrycks & Gimpel 2016,
/// arXiv:1606.08415). x [T, F].
Tensor activation_dropout(const Tensor& x, bool is_gelu, const Dropout& dropout);

}  // namespace lacuna
