#pragma once

#include "attention/call.h"

/// The CPU core on whole calls.
namespace lacuna {

/// Results that the forward pass keeps for the backward pass.
struct CoreResults {
  Tensor kept_number = {};  ///< [Tq, H]: a number that each row's search found (such as sparsemax's threshold), for types that keep it
  Tensor weights = {};      ///< weights that need not be computed again (kept_weights.h says which)
};

/// Returns true if the CPU core can run the call: q, k and v are equally wide, on the CPU, and float, double or bf16.
/// Not bf16 if sentences share keys: sums of their gradients would be rounded at each step.
bool core_takes(const AttentionCall& call);

/// Returns the context [Tq, H, d], contiguous, of a call that core_takes(), with q, k and v contiguous over d.
Tensor run_core(const AttentionCall& call, const ForwardContext& context, CoreResults* results = nullptr);

/// Returns the gradients of the call's inputs, from that of the context [Tq, H, d].
AttentionGradients run_core_backward(const AttentionCall& call, const ForwardContext& context, const Tensor& context_gradient,
                                     const CoreResults& kept = {});

}  // namespace lacuna
