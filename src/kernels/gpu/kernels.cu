#include "kernels/gpu/launch.h"

namespace lacuna::gpu {

const Kernels& compiled_kernels() {
  static const AllKernels<GpuLauncher> kernels;
  return kernels;
}

}  // namespace lacuna::gpu
