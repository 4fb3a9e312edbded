#include "kernels/gpu/launch.h"
#include "train/adam_kernel.h"

namespace lacuna {

const AdamKernels& compiled_adam_kernels() {
  static const AdamKernels kernels = AdamStarters<gpu::GpuLauncher>::kKernels;
  return kernels;
}

}  // namespace lacuna
