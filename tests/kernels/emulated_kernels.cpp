#include "emulated_kernels.h"

#include "emulated_warps.h"

namespace lacuna::gpu {

const Kernels& emulated_kernels() {
  static const AllKernels<EmulatedLauncher> kernels;
  return kernels;
}

}  // namespace lacuna::gpu
