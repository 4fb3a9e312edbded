#include <cuda_runtime.h>

#include "attention/cuda/kernel_list.h"

namespace lacuna::cuda {

int gpu_shared_bytes() {
  int device = 0, bytes = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 0;
  if (cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess) return 0;
  return bytes;
}

}  // namespace lacuna::cuda
