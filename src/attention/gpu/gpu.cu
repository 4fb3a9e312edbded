#include <cuda_runtime.h>

#include <string>

#include "attention/gpu/kernels.h"
#include "base/error.h"

namespace lacuna::cuda {
namespace {

void require_success(cudaError_t error) {
  if (error == cudaSuccess) return;
  const bool is_of_driver = error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice;
  throw MachineError(std::string("the GPU failed: ") + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")" +
                     (is_of_driver ? ". Expected a driver as new as the CUDA toolkit of this build: update it, or compute on the CPU "
                                     "(--device cpu)"
                                   : ""));
}

}  // namespace

int gpu_shared_bytes() {
  int device = 0, bytes = 0;
  require_success(cudaGetDevice(&device));
  require_success(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return bytes;
}

}  // namespace lacuna::cuda
