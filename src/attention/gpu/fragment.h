#pragma once

#include "attention/gpu/block.h"
#include "attention/gpu/kernels.h"

#ifdef __CUDACC__
#include <mma.h>
#endif

namespace lacuna::cuda {

/// A matrix of kTile x kTile floats, shared out among the lanes of a warp, to which products of such matrices are added. Matrices in memory
/// are given by a pointer to their first element and the distance from one row to the next.
template <class T, class Block>
class Fragment {
 public:
  /// Starts with zeros.
  LACUNA_HD explicit Fragment(const Block& block) : lane_(block.lane()) {}

  LACUNA_HD void multiply(float factor) {
    for (float& x : sum_) x *= factor;
  }
  LACUNA_HD void add(const float* from, int row) {
    for (int i = 0; i < kOwn; ++i) sum_[i] += from[row_of(i) * row + column_of(i)];
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
  float sum_[kOwn] = {};
};

#ifdef __CUDACC__

/// Sums on tensor cores, to which products of kTile x kDepth and kDepth x kTile numbers are added. Matrices in memory begin at 32 bytes.
template <int kDepth>
class TensorCoreSums {
 public:
  __device__ TensorCoreSums() { nvcuda::wmma::fill_fragment(sum_, 0.f); }

  __device__ void multiply(float factor) {
    for (int i = 0; i < sum_.num_elements; ++i) sum_.x[i] *= factor;
  }
  __device__ void add(const float* from, int row) {
    Sums other;
    nvcuda::wmma::load_matrix_sync(other, from, static_cast<unsigned>(row), nvcuda::wmma::mem_row_major);
    for (int i = 0; i < sum_.num_elements; ++i) sum_.x[i] += other.x[i];
  }
  __device__ void store(float* to, int row) const {
    nvcuda::wmma::store_matrix_sync(to, sum_, static_cast<unsigned>(row), nvcuda::wmma::mem_row_major);
  }

 protected:
  using Sums = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kTile, kTile, kDepth, float>;
  template <class Side, class Number, bool kTransposed>
  using Factor = nvcuda::wmma::fragment<Side, kTile, kTile, kDepth, Number,
                                        std::conditional_t<kTransposed, nvcuda::wmma::col_major, nvcuda::wmma::row_major>>;

  Sums sum_;
};

template <>
class Fragment<Bf16, Block> : public TensorCoreSums<kTile> {
 public:
  __device__ explicit Fragment(const Block& /*block*/) {}
  using TensorCoreSums::add;

  template <bool kTransposedA, bool kTransposedB>
  __device__ void add(const Bf16* a, int a_row, const Bf16* b, int b_row) {
    Factor<nvcuda::wmma::matrix_a, __nv_bfloat16, kTransposedA> left;
    Factor<nvcuda::wmma::matrix_b, __nv_bfloat16, kTransposedB> right;
    nvcuda::wmma::load_matrix_sync(left, reinterpret_cast<const __nv_bfloat16*>(a), static_cast<unsigned>(a_row));
    nvcuda::wmma::load_matrix_sync(right, reinterpret_cast<const __nv_bfloat16*>(b), static_cast<unsigned>(b_row));
    nvcuda::wmma::mma_sync(sum_, left, right, sum_);
  }
};

/// Tensor cores multiply numbers of 11 bits (TF32). A float is the sum of two of them to some 22 bits; the product of the smaller ones, at
/// most 2^-22 of the whole, is left out. What is infinite becomes NaN.
template <>
class Fragment<float, Block> : public TensorCoreSums<kTile / 2> {
 public:
  __device__ explicit Fragment(const Block& /*block*/) {}
  using TensorCoreSums::add;

  template <bool kTransposedA, bool kTransposedB>
  __device__ void add(const float* a, int a_row, const float* b, int b_row) {
    for (int k = 0; k < kTile; k += kTile / 2) {
      const Parts<Factor<nvcuda::wmma::matrix_a, Tf32, kTransposedA>> left(a + k * (kTransposedA ? a_row : 1), a_row);
      const Parts<Factor<nvcuda::wmma::matrix_b, Tf32, kTransposedB>> right(b + k * (kTransposedB ? 1 : b_row), b_row);
      nvcuda::wmma::mma_sync(sum_, left.small, right.large, sum_);
      nvcuda::wmma::mma_sync(sum_, left.large, right.small, sum_);
      nvcuda::wmma::mma_sync(sum_, left.large, right.large, sum_);
    }
  }

 private:
  using Tf32 = nvcuda::wmma::precision::tf32;
  /// A factor as the sum of two.
  template <class Whole>
  struct Parts {
    Whole large, small;
    __device__ Parts(const float* from, int row) {
      nvcuda::wmma::load_matrix_sync(large, from, static_cast<unsigned>(row));
      for (int i = 0; i < large.num_elements; ++i) {
        const float whole = large.x[i];
        large.x[i] = nvcuda::wmma::__float_to_tf32(whole);
        small.x[i] = nvcuda::wmma::__float_to_tf32(whole - large.x[i]);
      }
    }
  };
};

#endif

}  // namespace lacuna::cuda
