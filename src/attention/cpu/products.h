#pragma once

#include "attention/cpu/task.h"

// The products of a tile of queries: between a sentence's q, k, v, their gradients, and the core's rows of weights.
namespace lacuna::core {

/// Rows first to first + rows of a task, over keys from `begin`, `width` of them in all.
struct TileSpan {
  int first, rows, begin, width;
};

/// Products in the machine's own numbers. Rows of weights lie `stride` apart, here and in all other products.
template <class M>
class DirectProducts {
 public:
  using S = typename M::scalar;
  static constexpr int kTile = 64;        ///< rows of a tile at most: the more, the longer the sums over them that stay in registers
  static constexpr int kLowTile = 16;     ///< rows of a tile at most where rows see different keys
  static constexpr int kFirstKeys = 1;    ///< a tile's keys begin at a multiple of it
  static constexpr int kSparseShare = 3;  ///< where fewer than one weight in so many is not zero, SparseProducts are less work; 0 = never
  /// True if write_gradients takes the gradient of scores as write_scores gives them, not of those before scaling.
  static constexpr bool kScalesGradients = false;
  static constexpr bool kRounds = false;  ///< they can keep weights as KeptRows::rounded: by keep_rounded and restore_rounded

  static int64_t memory_elements(int64_t row, int64_t d_head) { return 2 * d_head * row; }

  DirectProducts(const CallConstants<S>& call, const Task<S>& task, const Workspace<S>& workspace)
      : task_(task),
        scale_(call.scale),
        stride_(workspace.row),
        d_(call.d_head),
        keys_(workspace.memory),
        values_(workspace.memory + d_ * stride_) {}

  /// scores = scale * q k^T
  void write_scores(const TileSpan& tile, S* scores) {
    transpose_once(keys_, has_keys_, task_.k, scale_);
    multiply_by_keys(tile, task_.q, keys_, scores);
  }
  /// gradient = (gradient of the context) v^T
  void write_weight_gradient(const TileSpan& tile, S* gradient) {
    transpose_once(values_, has_values_, task_.v, S(1));
    multiply_by_keys(tile, task_.context_gradient, values_, gradient);
  }
  void write_context(const TileSpan& tile, const S* weights) { write_rows(tile, weights, task_.v, task_.context); }
  /// Writes the gradient of q and adds to those of k and v, from the weights and the gradient of scores before scaling.
  void write_gradients(const TileSpan& tile, const S* weights, const S* gradient) {
    add_to_keys(tile, weights, task_.context_gradient, task_.v_gradient);
    write_rows(tile, gradient, task_.k, task_.q_gradient);
    add_to_keys(tile, gradient, task_.q, task_.k_gradient);
  }
  /// Must be called when nothing more will be added to the gradients.
  void finish_gradients() {}

 private:
  /// to (rows, keys) = from (rows, d) x by_key (d, keys)
  void multiply_by_keys(const TileSpan& tile, const Rows<const S>& from, const S* by_key, S* to) const {
    M::multiply(tile.rows, d_, tile.width, {from.row(tile.first), from.stride, 1}, by_key + tile.begin, stride_, to, stride_, false);
  }
  /// to (rows, d) = by_key (rows, keys) x of_keys (keys, d), for the tile's rows
  void write_rows(const TileSpan& tile, const S* by_key, const Rows<const S>& of_keys, const Rows<S>& to) const {
    M::multiply(tile.rows, tile.width, d_, {by_key, stride_, 1}, of_keys.row(tile.begin), of_keys.stride, to.row(tile.first), to.stride,
                false);
  }
  /// to (keys, d) += by_key (rows, keys)^T x of_queries (rows, d)
  void add_to_keys(const TileSpan& tile, const S* by_key, const Rows<const S>& of_queries, const Rows<S>& to) const {
    M::multiply(tile.width, tile.rows, d_, {by_key, 1, stride_}, of_queries.row(tile.first), of_queries.stride, to.row(tile.begin),
                to.stride, true);
  }
  void transpose_once(S* to, bool& is_done, const Rows<const S>& rows, S scale) const {
    if (!is_done) M::transpose(task_.keys, d_, rows.data, rows.stride, scale, to, stride_);
    is_done = true;
  }

  const Task<S>& task_;
  const S scale_;
  const int64_t stride_;
  const int d_;
  bool has_keys_ = false, has_values_ = false;
  S *keys_, *values_;  // [d, keys] transposed, once they are needed; keys times scale
};

/// The products of a tile whose weights are mostly zero: key by key, of the rows with weight there. A key's row of k, v or a
/// gradient is read once for all of them, and what is read for each lies in the L1 cache. Sums over keys and over rows
/// have the bits of DirectProducts: which of the two a tile takes does not show in a context.
template <class M>
class SparseProducts {
 public:
  using S = typename M::scalar;
  static constexpr bool kScalesGradients = false;

  SparseProducts(const CallConstants<S>& call, const Task<S>& task, RowsOfKeys rows_of, int64_t stride)
      : task_(task), stride_(stride), d_(call.d_head), rows_of_(rows_of) {}

  /// Notes where the tile has weight, for the products below. Returns how many weights that are.
  int find(const TileSpan& tile, const S* weights) const { return M::find_rows(tile.rows, tile.width, weights, stride_, rows_of_); }

  /// Elements of weight 0 get 0.
  void write_weight_gradient(const TileSpan& tile, S* gradient) const {
    for (int r = 0; r < tile.rows; ++r) M::clear(tile.width, gradient + r * stride_);
    M::multiply_named(rows_of_, tile.width, d_, task_.context_gradient.from(tile.first), task_.v.from(tile.begin), gradient, stride_);
  }
  void write_context(const TileSpan& tile, const S* weights) const {
    const Rows<S> context = cleared(tile, task_.context);
    M::add_to_rows(rows_of_, tile.width, d_, weights, stride_, task_.v.from(tile.begin), context);
  }
  void write_gradients(const TileSpan& tile, const S* weights, const S* gradient) const {
    Task<S> task = task_;
    task.q_gradient = cleared(tile, task_.q_gradient);
    task.q = task_.q.from(tile.first);
    task.context_gradient = task_.context_gradient.from(tile.first);
    task.k = task_.k.from(tile.begin);
    task.k_gradient = task_.k_gradient.from(tile.begin);
    task.v_gradient = task_.v_gradient.from(tile.begin);
    M::add_gradients(rows_of_, tile.width, d_, weights, gradient, stride_, task);
  }

 private:
  /// Returns the tile's rows, set to 0.
  Rows<S> cleared(const TileSpan& tile, const Rows<S>& rows) const {
    for (int r = 0; r < tile.rows; ++r) M::clear(d_, rows.row(tile.first + r));
    return rows.from(tile.first);
  }

  const Task<S>& task_;
  const int64_t stride_;
  const int d_;
  const RowsOfKeys rows_of_;
};

}  // namespace lacuna::core
