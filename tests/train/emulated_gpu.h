#pragma once

#include <span>

#include "attention/gpu/run.h"
#include "emulated_kernels.h"
#include "train/adam_step.h"

namespace lacuna {

const AdamKernels& emulated_adam_kernels();

/// While it lives, training on the CPU goes the way of a GPU, with every kernel of ours emulated. Attention has a thread a block, or the
/// threads of `attention`: in bf16, kernels that keep rows in registers need all of a warp.
class EmulatedGpu {
 public:
  explicit EmulatedGpu(std::span<const cuda::TypeKernels> attention = cuda::all_emulated_kernels())
      : attention_{attention, [] { return 163 * 1024; }} {
    cuda::emulate(&attention_);
    emulate_adam(&emulated_adam_kernels());
  }
  ~EmulatedGpu() {
    cuda::emulate(nullptr);
    emulate_adam(nullptr);
  }
  EmulatedGpu(const EmulatedGpu&) = delete;
  EmulatedGpu& operator=(const EmulatedGpu&) = delete;

 private:
  gpu::Emulation rows_;
  cuda::Engine attention_;
};

}  // namespace lacuna
