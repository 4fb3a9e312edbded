#pragma once

#include <vector>

#include "attention/call.h"
#include "kernels/cpu_target.h"

/// The CPU core on whole calls, and the instruction set that it runs with.
namespace lacuna {

/// Results that the forward pass keeps for the backward pass.
struct CoreResults {
  Tensor kept_number = {};  ///< [Tq, H]: a number that each row's search found (such as sparsemax's threshold), for types that keep it
  Tensor weights = {};      ///< weights that need not be computed again (pass_tensors.h says which)
};

/// Returns true if the CPU core can run the call: q, k and v are equally wide, on the CPU, and float, double or bf16.
/// Not bf16 if sentences share keys: sums of their gradients would be rounded at each step.
bool core_takes(const AttentionCall& call);

/// Returns the context [Tq, H, d], contiguous, of a call that core_takes(), with q, k and v contiguous over d.
Tensor run_core(const AttentionCall& call, const ForwardContext& context, CoreResults* results = nullptr);

/// Returns the gradients of the call's inputs, from that of the context [Tq, H, d].
AttentionGradients run_core_backward(const AttentionCall& call, const ForwardContext& context, const Tensor& context_gradient,
                                     const CoreResults& kept = {});

/// Returns the targets that attention has kernels for and this machine runs, the best last: kAvx2, kAvx512, kAvx512Bf16
/// (bf16 products in vectors), kAmx (in tiles).
std::vector<CpuTarget> attention_targets();

/// Returns the target in use: the best that this machine has, unless a test asked for another.
CpuTarget attention_target();
/// For tests: uses this target from now on. Throws MachineError if this machine does not have it.
void use_attention_target(CpuTarget target);

}  // namespace lacuna
