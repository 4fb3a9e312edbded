#pragma once

#include <vector>

#include "attention/call.h"
#include "attention/cpu/task.h"
#include "attention/registry.h"
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

/// Returns the core and a type's rows on numbers of float, for the target in use.
core::EntryPoints<float> float_core();
types::RowFunctions<float> float_rows(const types::TypeEntry& entry);

template <class S>
core::CallConstants<S> constants_of(const AttentionType& type, int64_t d_head, double scale, bool training,
                                    const types::RowFunctions<S>& rows) {
  const types::TypeEntry& entry = type.entry();
  return {.d_head = static_cast<int>(d_head),
          .scale = static_cast<S>(scale),
          .rows = rows,
          .options = type.options(),
          .sparse = entry.is_sparse(type.options()),
          .needs_scores = entry.needs_scores(type.options()),
          .uses_positions = entry.info.uses_positions,
          .training = training,
          .num_numbers = type.num_numbers()};
}

/// Returns the targets that attention has kernels for and this machine runs, the best last: kAvx2, kAvx512, kAvx512Bf16
/// (bf16 products in vectors), kAmx (in tiles).
std::vector<CpuTarget> attention_targets();

/// Returns the target in use: the best that this machine has, unless a test asked for another.
CpuTarget attention_target();
/// For tests: uses this target from now on. Throws MachineError if this machine does not have it.
void use_attention_target(CpuTarget target);

}  // namespace lacuna
