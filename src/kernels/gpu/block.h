#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "base/macros.h"
#include "kernels/dropout_factors.h"
#include "kernels/gpu/kernels.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#define LACUNA_KERNEL_CODE __device__ inline
#else
#include <bit>
#define LACUNA_KERNEL_CODE inline
#endif

/// What kernels are written with. A kernel is a struct: `Args`, the number of `kWarps` of a block, the `kSharedBytes` that its threads
/// share, and run(block, args, rows), which each thread of each block calls. `block` is the thread's view of its block: WarpBlock on a GPU,
/// a stand-in for it in tests.
namespace lacuna::gpu {

inline constexpr int kLanes = 32;

#ifdef __CUDACC__

class WarpBlock {
 public:
  __device__ int64_t index() const { return blockIdx.x; }
  __device__ int64_t column_index() const { return blockIdx.y; }
  __device__ int lane() const { return static_cast<int>(threadIdx.x); }
  __device__ int warp() const { return static_cast<int>(threadIdx.y); }
  /// Returns the x of the lane whose number differs by the bits of `distance`.
  template <class X>
  __device__ X exchanged(X x, int distance) const {
    return __shfl_xor_sync(kAll, x, distance);
  }
  /// Returns a bit for each lane, in all of them.
  __device__ unsigned ballot(bool holds) const { return __ballot_sync(kAll, holds); }
  /// Adds to a number in shared memory, which other threads may do meanwhile; returns what it was.
  __device__ int32_t add(int32_t* sum, int32_t value) const { return atomicAdd(sum, value); }
  /// Waits for all threads of the block.
  __device__ void sync() const { __syncthreads(); }
  __device__ unsigned char* shared() const {
    extern __shared__ __align__(16) unsigned char memory[];
    return memory;
  }

 private:
  static constexpr unsigned kAll = ~0u;
};

#endif

/// Returns the sum over the warp's lanes: the same bits on each.
template <class Block>
LACUNA_KERNEL_CODE float warp_sum(const Block& block, float x) {
  for (int distance = kLanes / 2; distance > 0; distance /= 2) x += block.exchanged(x, distance);
  return x;
}

/// Returns a number as it is stored: unchanged, or rounded to bf16.
template <class Stored>
LACUNA_KERNEL_CODE Stored stored(float x) {
  if constexpr (std::is_same_v<Stored, float>) {
    return x;
  } else {
#ifdef __CUDACC__
    return __bfloat16_as_ushort(__float2bfloat16_rn(x));
#else
    const auto bits = std::bit_cast<uint32_t>(x);
    if (x != x) return static_cast<uint16_t>(bits >> 16 | 0x40u);
    return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#endif
  }
}
LACUNA_KERNEL_CODE float loaded(float x) {
  return x;
}
LACUNA_KERNEL_CODE float loaded(uint16_t x) {
#ifdef __CUDACC__
  return __bfloat162float(__ushort_as_bfloat16(x));
#else
  return std::bit_cast<float>(static_cast<uint32_t>(x) << 16);
#endif
}

/// Four numbers that lie side by side: what a lane reads and writes at once.
struct Quad {
  static constexpr int kSize = 4;
  float x[kSize] = {};
};

/// The stored form of a quad.
template <class Stored>
struct alignas(4 * sizeof(Stored)) StoredQuad {
  Stored x[Quad::kSize];
};

template <class Stored>
LACUNA_KERNEL_CODE bool is_whole_quad(const Stored* place, int64_t count) {
  return count >= Quad::kSize && reinterpret_cast<uintptr_t>(place) % sizeof(StoredQuad<Stored>) == 0;
}

/// Returns the quad at `from`, of which `count` numbers exist (more than 4 count as 4); the others are 0.
template <class Stored>
LACUNA_KERNEL_CODE Quad load_quad(const Stored* from, int64_t count) {
  Quad quad;
  if (is_whole_quad(from, count)) {
    const auto all = *reinterpret_cast<const StoredQuad<Stored>*>(from);
    for (int k = 0; k < Quad::kSize; ++k) quad.x[k] = loaded(all.x[k]);
  } else {
    for (int k = 0; k < Quad::kSize; ++k)
      if (k < count) quad.x[k] = loaded(from[k]);
  }
  return quad;
}

template <class Stored>
LACUNA_KERNEL_CODE void store_quad(Stored* to, const Quad& quad, int64_t count) {
  if (is_whole_quad(to, count)) {
    StoredQuad<Stored> all;
    for (int k = 0; k < Quad::kSize; ++k) all.x[k] = stored<Stored>(quad.x[k]);
    *reinterpret_cast<StoredQuad<Stored>*>(to) = all;
  } else {
    for (int k = 0; k < Quad::kSize; ++k)
      if (k < count) to[k] = stored<Stored>(quad.x[k]);
  }
}

/// Features of a row from one quad of a lane to its next: each lane of the warp has a quad in between.
inline constexpr int64_t kFeaturesOfWarp = kLanes * Quad::kSize;

/// Which features of a row are kept. The rule (kernels/dropout_factors.h) lets a Philox block decide about eight features 16 apart, and a
/// lane works on four side by side. So each lane draws a block for 256 features at a time, and the lanes tell each other by ballots.
template <class Block>
class KeptFeatures {
 public:
  LACUNA_KERNEL_CODE KeptFeatures(const Block& block, const DropoutRows& dropout, int64_t row)
      : block_(block), dropped_(dropout, row), scale_(static_cast<float>(dropout.scale)), drops_(dropout.threshold > 0) {}

  /// Draws for quads 2 `pair` and 2 `pair` + 1 of every lane. All lanes must call it.
  LACUNA_KERNEL_CODE void draw(int64_t pair) {
    if (!drops_) return;
    const PhiloxBlock bits = dropped_.draw(pair * kLanes + block_.lane());
    for (int half = 0; half < FeatureBlocks::kHalfWords; ++half) {
      const unsigned of_all = block_.ballot(dropped_.template factor<float>(bits, half) != 0);
      if (half == block_.lane() / 4) of_lane_ = of_all;
    }
  }
  /// Returns the factors of the lane's quad: 0, or that of kept elements.
  LACUNA_KERNEL_CODE Quad factors(int64_t quad) const {
    const int first = static_cast<int>(quad % 2) * 16 + block_.lane() % 4 * Quad::kSize;
    Quad factors;
    for (int k = 0; k < Quad::kSize; ++k) {
      const bool is_kept = !drops_ || (of_lane_ >> (first + k) & 1u) != 0;
      factors.x[k] = is_kept ? scale_ : 0.f;
    }
    return factors;
  }

 private:
  const Block& block_;
  DroppedRow dropped_;
  float scale_;
  bool drops_;
  unsigned of_lane_ = 0;
};

}  // namespace lacuna::gpu
