#pragma once

#include "kernels/row_kernels.h"

/// The row kernels of training for GPUs, in builds with CUDA. Arguments are those of the CPU's loops (row_kernels.h), with
/// pointers into a GPU's memory; numbers are float. Each processes all rows, on the current GPU and on `stream`, and
/// returns null or an error message. Sums are always added up in the same order; a row's result depends on it alone.
namespace lacuna::gpu {

#if LACUNA_CUDA
inline constexpr bool kAreBuilt = true;
#else
inline constexpr bool kAreBuilt = false;
#endif

template <class Normed>
const char* residual_norm_forward(const ResidualNormForward<float, Normed>& args, int64_t rows, void* stream);
/// `output_sums` must be null.
template <class Normed, class Output>
const char* residual_norm_backward(const ResidualNormBackward<float, Normed, Output>& args, int64_t rows, void* stream);
template <class Stored>
const char* gated_rms_forward(const GatedRmsRows<float, Stored>& args, int64_t rows, void* stream);
template <class Stored>
const char* gated_rms_backward(const GatedRmsRows<float, Stored>& args, int64_t rows, void* stream);
const char* activation_forward(const ActivationRows<float>& args, int64_t rows, void* stream);
const char* activation_backward(const ActivationRows<float>& args, int64_t rows, void* stream);
const char* drop(const DropRows<float>& args, int64_t rows, void* stream);
const char* round_rows(const RoundedRows<float>& args, int64_t rows, void* stream);
const char* smoothed_loss(const LossRows<float>& args, int64_t rows, void* stream);

}  // namespace lacuna::gpu
