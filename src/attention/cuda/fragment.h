#pragma once

#include "attention/cuda/bf16.h"
#include "attention/cuda/block.h"
#include "attention/cuda/kernels.h"

#ifdef __CUDACC__
#include <mma.h>
#endif

namespace lacuna::cuda {

/// A matrix of kTile x kTile floats, shared out among the lanes of a warp, to which products of such matrices are added. Matrices in memory
/// are given by a pointer to their first element and the distance from one row to the next.
template <class T, class Block>
class Fragment {
 public:
  LACUNA_HD explicit Fragment(const Block& block) : lane_(block.lane()) {}

  LACUNA_HD void clear() {
    for (float& x : sum_) x = 0;
  }
  LACUNA_HD void load(const float* from, int row) {
    for (int i = 0; i < kOwn; ++i) sum_[i] = from[row_of(i) * row + column_of(i)];
  }
  LACUNA_HD void store(float* to, int row) const {
    for (int i = 0; i < kOwn; ++i) to[row_of(i) * row + column_of(i)] = sum_[i];
  }
  /// += a x b, or the transposed of one of them.
  template <bool kTransposedA, bool kTransposedB>
  LACUNA_HD void add(const T* a, int a_row, const T* b, int b_row) {
    for (int k = 0; k < kTile; ++k) {
      for (int i = 0; i < kOwn; ++i) {
        const int r = row_of(i), c = column_of(i);
        sum_[i] += static_cast<float>(kTransposedA ? a[k * a_row + r] : a[r * a_row + k]) *
                   static_cast<float>(kTransposedB ? b[c * b_row + k] : b[k * b_row + c]);
      }
    }
  }

 private:
  static constexpr int kOwn = kTile * kTile / Block::kLanes;
  LACUNA_HD int row_of(int i) const { return (lane_ + i * Block::kLanes) / kTile; }
  LACUNA_HD int column_of(int i) const { return (lane_ + i * Block::kLanes) % kTile; }

  int lane_;
  float sum_[kOwn];
};

#ifdef __CUDACC__

/// The same on tensor cores. Matrices in memory begin at 32 bytes.
template <>
class Fragment<Bf16, Block> {
 public:
  __device__ explicit Fragment(const Block& /*block*/) {}

  __device__ void clear() { nvcuda::wmma::fill_fragment(sum_, 0.f); }
  __device__ void load(const float* from, int row) {
    nvcuda::wmma::load_matrix_sync(sum_, from, static_cast<unsigned>(row), nvcuda::wmma::mem_row_major);
  }
  __device__ void store(float* to, int row) const {
    nvcuda::wmma::store_matrix_sync(to, sum_, static_cast<unsigned>(row), nvcuda::wmma::mem_row_major);
  }
  template <bool kTransposedA, bool kTransposedB>
  __device__ void add(const Bf16* a, int a_row, const Bf16* b, int b_row) {
    Factor<nvcuda::wmma::matrix_a, kTransposedA> left;
    Factor<nvcuda::wmma::matrix_b, kTransposedB> right;
    nvcuda::wmma::load_matrix_sync(left, reinterpret_cast<const __nv_bfloat16*>(a), static_cast<unsigned>(a_row));
    nvcuda::wmma::load_matrix_sync(right, reinterpret_cast<const __nv_bfloat16*>(b), static_cast<unsigned>(b_row));
    nvcuda::wmma::mma_sync(sum_, left, right, sum_);
  }

 private:
  template <bool kTransposed>
  using Layout = std::conditional_t<kTransposed, nvcuda::wmma::col_major, nvcuda::wmma::row_major>;
  template <class Side, bool kTransposed>
  using Factor = nvcuda::wmma::fragment<Side, kTile, kTile, kTile, __nv_bfloat16, Layout<kTransposed>>;

  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kTile, kTile, kTile, float> sum_;
};

#endif

}  // namespace lacuna::cuda
