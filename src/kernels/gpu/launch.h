#pragma once

#include "base/cuda_message.h"
#include "kernels/gpu/all_kernels.h"
#include "kernels/gpu/started.h"

/// Starting kernels on a GPU; for nvcc.
namespace lacuna::gpu {

template <class Kernel>
__global__ void __launch_bounds__(kLanes* Kernel::kWarps) run_kernel(const __grid_constant__ typename Kernel::Args args, int64_t rows) {
  Kernel::run(WarpBlock(), args, rows);
}

struct GpuLauncher {
  template <class Kernel>
  static const char* start(const typename Kernel::Args& args, int64_t rows, const Grid& grid, void* stream) {
    if (grid.rows == 0 || grid.columns == 0) return nullptr;
    count_launch();
    const dim3 blocks(static_cast<unsigned>(grid.rows), static_cast<unsigned>(grid.columns)), threads(kLanes, Kernel::kWarps);
    run_kernel<Kernel><<<blocks, threads, Kernel::kSharedBytes, static_cast<cudaStream_t>(stream)>>>(args, rows);
    return message_of(cudaGetLastError());
  }
};

}  // namespace lacuna::gpu
