#include <cuda_runtime.h>

#include "base/cuda_message.h"
#include "kernels/best_rows.h"
#include "kernels/best_rows_block.h"
#include "kernels/gpu/started.h"

namespace lacuna::gpu {
namespace {

/// A block of the GPU. The host's half of nvcc reads this and never runs it.
struct Block {
  template <class F>
  LACUNA_HOST_DEVICE void each([[maybe_unused]] F f) const {
#ifdef __CUDA_ARCH__
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
#endif
  }
  LACUNA_HOST_DEVICE int32_t add([[maybe_unused]] int32_t* sum, [[maybe_unused]] int32_t value) const {
#ifdef __CUDA_ARCH__
    return atomicAdd(sum, value);
#else
    return 0;
#endif
  }
};

__global__ void __launch_bounds__(kBestThreads) best_of_row(const BestRows args) {
  __shared__ BestRowMemory memory;
  BestOfRow<Block>{args, static_cast<int64_t>(blockIdx.x), Block(), memory}.run();
}

}  // namespace

const char* find_best_of_rows(const BestRows& args, int64_t rows, void* stream) {
  if (rows == 0) return nullptr;
  count_launch();
  best_of_row<<<static_cast<unsigned>(rows), kBestThreads, 0, static_cast<cudaStream_t>(stream)>>>(args);
  return message_of(cudaGetLastError());
}

}  // namespace lacuna::gpu
