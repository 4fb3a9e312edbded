#include <cuda_runtime.h>

#include "kernels/dropout_factors.h"

namespace lacuna {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) write_all(DropoutFactors<float> factors, int64_t draws) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + static_cast<int64_t>(threadIdx.x);
  if (i < draws) factors.write(i / factors.blocks(), i % factors.blocks());
}

}  // namespace

const char* write_dropout_factors_on_gpu(const DropoutFactors<float>& factors, int64_t rows, void* stream) {
  const int64_t draws = rows * factors.blocks();
  if (draws == 0) return nullptr;
  const auto grid = static_cast<unsigned>((draws + kThreads - 1) / kThreads);
  write_all<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(factors, draws);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace lacuna
