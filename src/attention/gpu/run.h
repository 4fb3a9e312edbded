#pragma once

#include <memory>
#include <span>

#include "attention/cpu/core_run.h"
#include "attention/gpu/kernels.h"

/// Whole calls on a GPU.
namespace lacuna::cuda {

/// Kernels of some types, and where they run.
struct Engine {
  std::span<const Kernels> kernels;
  int (*shared_bytes)();  ///< that a block may use
};

/// For tests: calls on CPU tensors go through these kernels, compiled for the host, in place of the CPU's core; null = no longer.
void emulate(const Engine* engine);

/// True if the call's tensors are where an engine runs, of a kind that it takes, and their type has kernels.
bool has_kernels(const AttentionCall& call);

/// A call's work, laid out: shared by its forward and backward pass. Throws MachineError if a sentence is too long for the GPU's shared
/// memory and there will be a backward pass.
class Plans;
std::shared_ptr<const Plans> plan(const AttentionCall& call);

/// As run_core and run_core_backward. float or bf16; rows are float. The bits do not depend on what else is in the batch, unless it is a
/// sentence too long for the shared memory: such a call without gradients goes through the CPU's core.
Tensor run(const AttentionCall& call, const ForwardContext& context, const Plans& plans);
AttentionGradients run_backward(const AttentionCall& call, const ForwardContext& context, const Plans& plans,
                                const Tensor& context_gradient);

}  // namespace lacuna::cuda
