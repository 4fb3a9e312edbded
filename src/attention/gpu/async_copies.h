#pragma once

#include "attention/gpu/kernels.h"

#ifdef __CUDACC__
#include <cuda_pipeline.h>
#endif

namespace lacuna::cuda {

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
