#pragma once

#include "attention/cpu/core.h"

// The products that tiles of queries go through, between a sentence's q, k, v, their gradients, and rows of weights that the core holds.
namespace lacuna::core {

/// Rows first to first + rows of a task, over keys from `begin`, `width` of them in all.
struct TileSpan {
  int first, rows, begin, width;
};

/// In the machine's own numbers. Rows of weights lie `stride` apart, here and in all other products.
template <class M>
class DirectProducts {
 public:
  using S = typename M::scalar;
  static constexpr int kTile = 64;        ///< rows of a tile at most: the more, the longer the sums over them that stay in registers
  static constexpr int kLowTile = 16;     ///< ... where rows see different keys
  static constexpr int kFirstKeys = 1;    ///< a tile's keys begin at a multiple of it
  static constexpr int kSparseShare = 3;  ///< where fewer than one weight in so many is not zero, SparseProducts are less work; 0 = never
  /// write_gradients takes the gradient of scores as write_scores gives them, and not that of scores that are not scaled.
  static constexpr bool kScalesGradients = false;
  static constexpr bool kRounds = false;  ///< they can keep weights as KeptRows::rounded: by keep_rounded and find_rounded

  static int64_t memory_elements(int64_t row, int64_t d_head) { return 2 * d_head * row; }

  DirectProducts(const Call<S>& call, const Task<S>& task, const Workspace<S>& workspace)
      : task_(task),
        scale_(call.scale),
        stride_(workspace.row),
        d_(call.d_head),
        ahead_(workspace.ahead),
        keys_(workspace.memory),
        values_(workspace.memory + d_ * stride_) {}

  /// scores = scale * q k^T
  void write_scores(const TileSpan& tile, S* scores) {
    transpose_once(keys_, has_keys_, task_.k, task_.k_stride, scale_);
    M::multiply(tile.rows, d_, tile.width, {task_.q + tile.first * task_.q_stride, task_.q_stride, 1}, keys_ + tile.begin, stride_, scores,
                stride_, false, ahead_);
  }
  /// gradient = that of the context * v^T
  void write_weight_gradient(const TileSpan& tile, S* gradient) {
    transpose_once(values_, has_values_, task_.v, task_.v_stride, S(1));
    M::multiply(tile.rows, d_, tile.width, {task_.context_gradient + tile.first * task_.context_stride, task_.context_stride, 1},
                values_ + tile.begin, stride_, gradient, stride_, false, ahead_);
  }
  void write_context(const TileSpan& tile, const S* weights) {
    M::multiply(tile.rows, tile.width, d_, {weights, stride_, 1}, task_.v + tile.begin * task_.v_stride, task_.v_stride,
                task_.context + tile.first * task_.context_stride, task_.context_stride, false, ahead_);
  }
  /// From the gradient of scores that are not scaled.
  void write_query_gradient(const TileSpan& tile, const S* gradient) {
    write_rows(tile, gradient, task_.k, task_.k_stride, task_.q_gradient);
  }
  void add_key_gradient(const TileSpan& tile, const S* gradient) { add_to_keys(tile, gradient, task_.q, task_.q_stride, task_.k_gradient); }
  void add_value_gradient(const TileSpan& tile, const S* weights) {
    add_to_keys(tile, weights, task_.context_gradient, task_.context_stride, task_.v_gradient);
  }
  /// All three, from the weights and the gradient of scores that are not scaled.
  void write_gradients(const TileSpan& tile, const S* weights, const S* gradient) {
    add_value_gradient(tile, weights);
    write_query_gradient(tile, gradient);
    add_key_gradient(tile, gradient);
  }
  /// To be called when nothing more will be added.
  void finish_gradients() {}

  /// to (queries, d) = by_key (rows, keys) x of_keys (keys, d), for the tile's rows
  void write_rows(const TileSpan& tile, const S* by_key, const S* of_keys, int64_t row, S* to) const {
    M::multiply(tile.rows, tile.width, d_, {by_key, stride_, 1}, of_keys + tile.begin * row, row, to + tile.first * task_.q_gradient_stride,
                task_.q_gradient_stride, false, ahead_);
  }
  /// to (keys, d) += by_key (rows, keys)^T x of_queries (rows, d)
  void add_to_keys(const TileSpan& tile, const S* by_key, const S* of_queries, int64_t row, S* to) const {
    M::multiply(tile.width, tile.rows, d_, {by_key, 1, stride_}, of_queries + tile.first * row, row,
                to + tile.begin * task_.gradient_stride, task_.gradient_stride, true, ahead_);
  }

 private:
  void transpose_once(S* to, bool& is_done, const S* rows, int64_t row, S scale) const {
    if (!is_done) M::transpose(task_.keys, d_, rows, row, scale, to, stride_);
    is_done = true;
  }

  const Task<S>& task_;
  const S scale_;
  const int64_t stride_;
  const int d_;
  RowsAhead* const ahead_;
  bool has_keys_ = false, has_values_ = false;
  S *keys_, *values_;  // [d, keys] transposed, once they are wanted; keys times scale
};

/// The same products where most weights are zero: key by key, of the rows with weight there. A key's row of k, v or a gradient is read once
/// for all of them, and what is read for each lies in the first cache. Sums over keys and over rows have the bits of DirectProducts: which
/// of the two a tile takes does not show in a context.
template <class M>
class SparseProducts {
 public:
  using S = typename M::scalar;
  static constexpr bool kScalesGradients = false;

  SparseProducts(const Call<S>& call, const Task<S>& task, RowsOfKeys rows_of, int64_t stride)
      : task_(task), stride_(stride), d_(call.d_head), rows_of_(rows_of) {}

  /// Notes where a tile has weight, for all below. Returns how many weights that are.
  int find(const TileSpan& tile, const S* weights) const { return M::find_rows(tile.rows, tile.width, weights, stride_, rows_of_); }

  /// Elements of weight 0 get 0.
  void write_weight_gradient(const TileSpan& tile, S* gradient) const {
    for (int r = 0; r < tile.rows; ++r) M::clear(tile.width, gradient + r * stride_);
    M::multiply_named(rows_of_, tile.width, d_, task_.context_gradient + tile.first * task_.context_stride, task_.context_stride,
                      task_.v + tile.begin * task_.v_stride, task_.v_stride, gradient, stride_);
  }
  void write_context(const TileSpan& tile, const S* weights) const {
    S* const context = clear_rows(tile, task_.context, task_.context_stride);
    M::add_to_rows(rows_of_, tile.width, d_, weights, stride_, task_.v + tile.begin * task_.v_stride, task_.v_stride, context,
                   task_.context_stride);
  }
  void write_gradients(const TileSpan& tile, const S* weights, const S* gradient) const {
    clear_rows(tile, task_.q_gradient, task_.q_gradient_stride);
    Task<S> task = task_;
    task.q += tile.first * task.q_stride;
    task.q_gradient += tile.first * task.q_gradient_stride;
    task.context_gradient += tile.first * task.context_stride;
    task.k += tile.begin * task.k_stride;
    task.k_gradient += tile.begin * task.gradient_stride;
    task.v_gradient += tile.begin * task.gradient_stride;
    M::add_gradients(rows_of_, tile.width, d_, weights, gradient, stride_, task);
  }

 private:
  S* clear_rows(const TileSpan& tile, S* rows, int64_t row) const {
    rows += tile.first * row;
    for (int r = 0; r < tile.rows; ++r) M::clear(d_, rows + r * row);
    return rows;
  }

  const Task<S>& task_;
  const int64_t stride_;
  const int d_;
  const RowsOfKeys rows_of_;
};

}  // namespace lacuna::core
