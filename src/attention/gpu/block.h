#pragma once

#include "attention/gpu/kernels.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include "emulated_block.h"  // in tests/contract: kernels are compiled for the CPU by tests alone
#endif

/// A thread's view of its block: its indices, and the operations that it does together with other threads. Kernels are written once, on
/// this interface.
namespace lacuna::cuda {

#ifdef __CUDACC__

/// A block of a GPU, of at most kWarps warps.
struct Block {
  static constexpr int kLanes = 32;

  LACUNA_HD int lane() const { return thread() % kLanes; }
  LACUNA_HD int warp() const { return thread() / kLanes; }
#ifdef __CUDA_ARCH__
  LACUNA_HD int warps() const {
    return static_cast<int>(blockDim.x) / kLanes;
  }
  LACUNA_HD void sync() const {
    __syncthreads();
  }
  LACUNA_HD void sync_warp() const {
    __syncwarp();
  }
  /// Returns the sum over the warp's lanes: the same bits on each.
  LACUNA_HD float sum(float x) const {
    for (int distance = kLanes / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(kAll, x, distance);
    return x;
  }
  LACUNA_HD float max(float x) const {
    for (int distance = kLanes / 2; distance > 0; distance /= 2) x = fmaxf(x, __shfl_xor_sync(kAll, x, distance));
    return x;
  }
  /// Returns the number of lower lanes where `holds` is true; sets `total` to the number of all.
  LACUNA_HD int rank(bool holds, int& total) const {
    const unsigned lanes = __ballot_sync(kAll, holds);
    total = __popc(lanes);
    return __popc(lanes & ((1u << lane()) - 1));
  }

 private:
  static constexpr unsigned kAll = ~0u;
  LACUNA_HD int thread() const {
    return static_cast<int>(threadIdx.x);
  }
#else  // the host's half of nvcc reads the kernels and never runs them
  LACUNA_HD int warps() const {
    return 1;
  }
  LACUNA_HD void sync() const {}
  LACUNA_HD void sync_warp() const {}
  LACUNA_HD float sum(float x) const {
    return x;
  }
  LACUNA_HD float max(float x) const {
    return x;
  }
  LACUNA_HD int rank(bool, int& total) const {
    return total = 0;
  }

 private:
  LACUNA_HD int thread() const {
    return 0;
  }
#endif
};

#endif

}  // namespace lacuna::cuda
