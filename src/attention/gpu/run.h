#pragma once

#include <memory>
#include <span>
#include <vector>

#include "attention/call.h"
#include "attention/gpu/flash.h"
#include "attention/gpu/kernels.h"
#include "base/upload.h"

/// Attention calls on a GPU.
namespace lacuna::cuda {

/// Bytes of the device's memory for rows that do not fit into a block's, at most (or those of one tile of each head).
inline constexpr int64_t kRowMemory = int64_t{1} << 29;

/// The kernels of all types, and the device that they run on.
struct Engine {
  std::span<const TypeKernels> kernels;
  int (*shared_bytes)();                ///< that a block may use
  bool takes_short_rows = true;         ///< false, in tests: the kernels of tiles take all sentences
  const FlashKernels* flash = nullptr;  ///< null = none
  int64_t row_memory = kRowMemory;
};

/// For tests: sends calls on CPU tensors through these kernels, compiled for the host, in place of the CPU's core; null ends that.
void emulate(const Engine* engine);

/// Returns the engine for a tensor's device; null if there is none.
const Engine* engine_for(const Tensor& tensor);
/// Returns an engine's kernels of a type; null if there are none.
const TypeKernels* kernels_of(const Engine& engine, const AttentionType& type);

/// Returns true if there are kernels for the call's device, number type and attention type.
bool has_kernels(const AttentionCall& call);

/// The schedules of a call, shared by its forward and backward pass.
class BlockSchedules;
/// Returns the schedules of a call in its context; the last few are cached. Throws MachineError if heads are too wide for the GPU's shared
/// memory.
std::shared_ptr<const BlockSchedules> schedule(const AttentionCall& call, const ForwardContext& context);

/// Has the upload bring the schedules of calls like this one, which this thread will make: schedule() returns them once it is sent.
void prepare(const AttentionCall& call, const ForwardContext& context, Upload& upload);

/// What the forward pass leaves to the backward pass.
struct KeptResults {
  FlashResults flash;
  Tensor row_results;              ///< KernelCall::row_results; undefined = no sentence has long rows
  std::vector<Tensor> has_weight;  ///< KernelCall::has_weight of each schedule
};

/// The counterparts of run_core and run_core_backward. Tensors are float or bf16; rows are float. The bits do not depend on what else is in
/// the batch; those of the gradients of q by flash attention depend on how many sentences it takes at once.
/// Sets `kept` to what the backward pass needs, if it is not null.
Tensor run(const AttentionCall& call, const ForwardContext& context, const BlockSchedules& schedules, KeptResults* kept = nullptr);
AttentionGradients run_backward(const AttentionCall& call, const ForwardContext& context, const BlockSchedules& schedules,
                                const KeptResults& kept, const Tensor& context_gradient);

}  // namespace lacuna::cuda
