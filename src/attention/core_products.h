#pragma once

#include "attention/core.h"

// The products that tiles of queries go through, between a sentence's q, k, v, their gradients, and rows of weights that the core holds.
namespace lacuna::core {

/// Rows first to first + rows of a task, over keys from `begin`, `width` of them in all.
struct TileSpan {
  int first, rows, begin, width;
};

/// In the machine's own numbers. Rows of weights lie `stride` apart, here and in all other products.
template <class M, int kRows = 16>
class DirectProducts {
 public:
  using S = typename M::scalar;
  static constexpr int kTile = kRows;   ///< rows of a tile at most
  static constexpr int kFirstKeys = 1;  ///< a tile's keys begin at a multiple of it
  static constexpr int kListShare = 4;  ///< where fewer than one weight in so many is not zero, lists are less work

  static int64_t memory_elements(int64_t row, int64_t d_head) { return 2 * d_head * row; }

  DirectProducts(const Call<S>& call, const Task<S>& task, S* memory, int64_t stride)
      : task_(task), scale_(call.scale), stride_(stride), d_(call.d_head), keys_(memory), values_(memory + d_ * stride) {}

  /// scores = scale * q k^T
  void write_scores(const TileSpan& tile, S* scores) {
    transpose_keys();
    M::multiply(tile.rows, d_, tile.width, {task_.q + tile.first * task_.q_stride, task_.q_stride, 1}, keys_ + tile.begin, stride_, scores,
                stride_, false);
  }
  /// gradient = that of the context * v^T
  void write_weight_gradient(const TileSpan& tile, S* gradient) {
    M::multiply(tile.rows, d_, tile.width, {task_.context_gradient + tile.first * task_.context_stride, task_.context_stride, 1},
                values_ + tile.begin, stride_, gradient, stride_, false);
  }
  void write_context(const TileSpan& tile, const S* weights) {
    M::multiply(tile.rows, tile.width, d_, {weights, stride_, 1}, task_.v + tile.begin * task_.v_stride, task_.v_stride,
                task_.context + tile.first * task_.context_stride, task_.context_stride, false);
  }
  /// From the gradient of scores that are not scaled.
  void write_query_gradient(const TileSpan& tile, const S* gradient) {
    write_rows(tile, gradient, task_.k, task_.k_stride, task_.q_gradient);
  }
  void add_key_gradient(const TileSpan& tile, const S* gradient) { add_to_keys(tile, gradient, task_.q, task_.q_stride, task_.k_gradient); }
  void add_value_gradient(const TileSpan& tile, const S* weights) {
    add_to_keys(tile, weights, task_.context_gradient, task_.context_stride, task_.v_gradient);
  }
  /// To be called when nothing more will be added.
  void finish_gradients() {}

  /// to (queries, d) = by_key (rows, keys) x of_keys (keys, d), for the tile's rows
  void write_rows(const TileSpan& tile, const S* by_key, const S* of_keys, int64_t row, S* to) const {
    M::multiply(tile.rows, tile.width, d_, {by_key, stride_, 1}, of_keys + tile.begin * row, row, to + tile.first * task_.q_gradient_stride,
                task_.q_gradient_stride, false);
  }
  /// to (keys, d) += by_key (rows, keys)^T x of_queries (rows, d)
  void add_to_keys(const TileSpan& tile, const S* by_key, const S* of_queries, int64_t row, S* to) const {
    M::multiply(tile.width, tile.rows, d_, {by_key, 1, stride_}, of_queries + tile.first * row, row,
                to + tile.begin * task_.gradient_stride, task_.gradient_stride, true);
  }

 private:
  void transpose_keys() {
    if (is_transposed_) return;
    is_transposed_ = true;
    M::transpose(task_.keys, d_, task_.k, task_.k_stride, scale_, keys_, stride_);
    if (task_.context_gradient != nullptr) M::transpose(task_.keys, d_, task_.v, task_.v_stride, S(1), values_, stride_);
  }

  const Task<S>& task_;
  const S scale_;
  const int64_t stride_;
  const int d_;
  bool is_transposed_ = false;
  S *keys_, *values_;  // [d, keys] transposed; keys times scale, values in the backward pass only
};

}  // namespace lacuna::core
