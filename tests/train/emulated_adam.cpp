#include "emulated_gpu.h"
#include "emulated_warps.h"
#include "train/adam_kernel.h"

namespace lacuna {

const AdamKernels& emulated_adam_kernels() {
  static const AdamKernels kernels = AdamStarters<gpu::EmulatedLauncher>::kKernels;
  return kernels;
}

}  // namespace lacuna
