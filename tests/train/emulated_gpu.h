#pragma once

#include "attention/gpu/run.h"
#include "emulated_kernels.h"
#include "train/adam_step.h"

namespace lacuna {

const AdamKernels& emulated_adam_kernels();

/// While it lives, training on the CPU goes the way of a GPU, with every kernel of ours emulated.
class EmulatedGpu {
 public:
  EmulatedGpu() : attention_{cuda::all_emulated_kernels(), [] { return 163 * 1024; }} {
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
