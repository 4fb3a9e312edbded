#pragma once

#include "attention/gpu/kernels.h"

#ifdef __CUDACC__
#include <cuda_pipeline.h>
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

/// Asynchronous copies from global to shared memory (cp.async). The thread that began them waits for them, in groups; other threads see
/// them after a barrier. On the CPU each copy is done at once.
struct AsyncCopies {
  /// Copies 16 bytes; zeros if `from` is null.
  template <class T>
  LACUNA_HD static void begin_16_bytes(const T* from, T* to) {
#ifdef __CUDA_ARCH__
    if (from != nullptr) {
      __pipeline_memcpy_async(to, from, 16);
    } else {
      *reinterpret_cast<uint4*>(to) = uint4{};
    }
#else
    for (size_t i = 0; i < 16 / sizeof(T); ++i) to[i] = from != nullptr ? from[i] : T(0.f);
#endif
  }

  LACUNA_HD static void end_group() {
#ifdef __CUDA_ARCH__
    __pipeline_commit();
#endif
  }
  LACUNA_HD static void wait_for_all() {
#ifdef __CUDA_ARCH__
    __pipeline_wait_prior(0);
#endif
  }
  LACUNA_HD static void wait_for_all_but_the_last() {
#ifdef __CUDA_ARCH__
    __pipeline_wait_prior(1);
#endif
  }
};

}  // namespace lacuna::cuda
