#pragma once

#include "attention/gpu/kernels.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include "attention/gpu/emulated_block.h"
#endif

/// A thread's view of its block: who it is, and what it does together with the others. The kernels are written on it, once.
namespace lacuna::cuda {

#ifdef __CUDACC__

/// Some warps of a GPU, at most kWarps.
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
  /// The same bits on every lane.
  LACUNA_HD float sum(float x) const {
    for (int distance = kLanes / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(kAll, x, distance);
    return x;
  }
  LACUNA_HD float max(float x) const {
    for (int distance = kLanes / 2; distance > 0; distance /= 2) x = fmaxf(x, __shfl_xor_sync(kAll, x, distance));
    return x;
  }
  /// How many lanes before this one hold true; `total`: how many do in all.
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
