#pragma once

#include "kernels/dropout.h"

namespace lacuna {

/// Returns dropout(swish(gate) * value) [T, F], where a row of x [T, 2F] is a gate and then a value of F numbers each
/// (Shazeer 2020, arXiv:2002.05202, eq. 6).
Tensor swiglu_dropout(const Tensor& x, const Dropout& dropout);

/// Writes swish(gate) * value of x [rows, 2F] to `to` [rows, F].
void swiglu(const float* x, int64_t rows, int64_t d_ff, float* to);

}  // namespace lacuna
