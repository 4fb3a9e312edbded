#pragma once

#include "attention/gpu/kernels.h"

#ifdef __CUDACC__
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#define LACUNA_DEVICE __device__ __forceinline__
#else
#include "emulated_block.h"  // in tests/contract: kernels are compiled for the CPU by tests alone
#define LACUNA_DEVICE inline
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
  LACUNA_HD static bool on_any_lane(bool holds) {
    return __any_sync(kAll, holds) != 0;
  }

  /// Returns the sum over the four lanes that share rows (lane_layout.h): the same bits on each.
  LACUNA_HD float sum_of_row(float x) const {
    x += __shfl_xor_sync(kAll, x, 1);
    return x + __shfl_xor_sync(kAll, x, 2);
  }
  LACUNA_HD float max_of_row(float x) const {
    x = fmaxf(x, __shfl_xor_sync(kAll, x, 1));
    return fmaxf(x, __shfl_xor_sync(kAll, x, 2));
  }

  // Instructions of tensor cores. `row` points to 8 numbers in shared memory, row i % 8 of part i / 8 on lane i; lane i then gets two
  // numbers of each part: those of row i / 4 in columns 2 (i % 4) and the next; of the transposed part, those of column i / 4 in these
  // rows.

  LACUNA_HD void load_parts(const Bf16* row, uint32_t (&parts)[4]) const {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(parts[0]), "=r"(parts[1]), "=r"(parts[2]), "=r"(parts[3])
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
                 : "memory");
  }
  LACUNA_HD void load_parts_transposed(const Bf16* row, uint32_t (&parts)[4]) const {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(parts[0]), "=r"(parts[1]), "=r"(parts[2]), "=r"(parts[3])
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
                 : "memory");
  }
  /// Adds the product of 16 x 16 and 16 x 8 numbers: `low` and `high` are this lane's sums in its two rows, in two columns each.
  LACUNA_HD void multiply_add(const uint32_t* left, const uint32_t* right, float& low0, float& low1, float& high0, float& high1) const {
    // volatile: all lanes must come to it, so it must not be moved to where only some need its result.
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(low0), "+f"(low1), "+f"(high0), "+f"(high1)
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
  }
  /// Returns two numbers rounded to bf16, the first in the lower half.
  LACUNA_HD uint32_t rounded_pair(float first, float second) const {
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
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
  LACUNA_HD static bool on_any_lane(bool holds) {
    return holds;
  }
  LACUNA_HD float sum_of_row(float x) const {
    return x;
  }
  LACUNA_HD float max_of_row(float x) const {
    return x;
  }
  LACUNA_HD void load_parts(const Bf16*, uint32_t (&)[4]) const {}
  LACUNA_HD void load_parts_transposed(const Bf16*, uint32_t (&)[4]) const {}
  LACUNA_HD void multiply_add(const uint32_t*, const uint32_t*, float&, float&, float&, float&) const {}
  LACUNA_HD uint32_t rounded_pair(float, float) const {
    return 0;
  }

 private:
  LACUNA_HD int thread() const {
    return 0;
  }
#endif
};

#endif

/// Returns x * y, rounded. nvcc may fuse any other product with a sum that follows it: what is worked out twice would have other bits.
LACUNA_HD float rounded_product(float x, float y) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(x, y);
#else
  return x * y;
#endif
}

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

  /// Copies 16 bytes from shared to global memory, at once.
  template <class T>
  LACUNA_HD static void write_16_bytes(const T* from, T* to) {
#ifdef __CUDA_ARCH__
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
#else
    for (size_t i = 0; i < 16 / sizeof(T); ++i) to[i] = from[i];
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
