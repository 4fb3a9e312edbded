#pragma once

#include "attention/cpu/products.h"
#include "attention/cpu/task.h"
#include "attention/cpu/tile.h"
#include "attention/patterns/pattern.h"
#include "attention/rows/dropout.h"

// A row of scores takes one of two ways. *Tiles*: where neighboring queries see much the same keys, some rows at a time
// go through small matrix products, all in cache; where most weights turn out to be zero, through products that leave
// these out. *Lists*: where keys are named by slots or lie far apart, and where there is a single query, a row's keys
// are a list and only these are touched. The weights of tiles of short rows may be kept for the backward pass. Others
// are computed again: that costs no more than writing and reading them, and memory stays proportional to the number of
// tokens.
//
// Compiled for several instruction sets: may call only inline functions that are templates on `M` or always inlined.
namespace lacuna::core {

/// The attention of one task. `M` is a machine: row type and small products (machine_simd.h, core_plain.cpp). `P` are
/// a tile's products (products.h).
template <class M, class P = DirectProducts<M>>
class Core {
 public:
  using S = typename M::scalar;

  static void forward(const CallConstants<S>& call, const Task<S>& task, const Workspace<S>& workspace) {
    Core(call, task, workspace).run_forward();
  }
  static void backward(const CallConstants<S>& call, const Task<S>& task, const Workspace<S>& workspace) {
    Core(call, task, workspace).run_backward();
  }
  /// Returns the size of Workspace::memory for one task.
  static int64_t memory_elements(int64_t row, int64_t rows, int64_t d_head) {
    return P::memory_elements(row, d_head) + row * (5 * rows + 5);
  }

 protected:
  static constexpr int kTile = P::kTile;
  static_assert(kTile <= kMaxTileRows && kTile % KeptRows<S>::kRows == 0 && P::kLowTile % KeptRows<S>::kRows == 0,
                "a tile would reach beyond its workspace, or beyond where its rows are kept");

  using Tile = QueryTile<kTile>;
  using List = KeyList<S>;
  using PendingRows = core::PendingRows<S, kTile>;

  Core(const CallConstants<S>& call, const Task<S>& task, const Workspace<S>& workspace)
      : call_(call),
        task_(task),
        stride_(workspace.row),
        rows_(workspace.rows),
        d_(call.d_head),
        products_(call, task, workspace),
        sparse_products_(call, task, workspace.rows_of, workspace.row),
        index_(workspace.index),
        keeps_in_place_(task.kept_rows.weights.data != nullptr && task.kept_rows.weights.stride == workspace.row &&
                        task.dropout == nullptr) {
    S* next = workspace.memory + P::memory_elements(workspace.row, d_);
    const auto take = [&](int64_t rows) {
      S* memory = next;
      next += rows * workspace.row;
      return memory;
    };
    weights_ = take(rows_);
    scores_ = take(rows_);
    gradient_ = take(rows_);
    factors_ = take(rows_);
    positions_ = take(1);
    scratch_ = take(1);
    list_weights_ = take(rows_);
    list_scores_ = take(1);
    list_gradient_ = take(1);
    list_factors_ = take(1);
  }

  // --- forward ---

  void run_forward() {
    const auto listed = [&](const Tile& tile) { forward_listed(tile); };
    for_each_tile(listed, [&](const Tile& tile) {
      compute_weights(tile);
      show(tile);
      write_context(tile);
    });
  }

  /// Writes the context of the tile's rows, weights * v, and keeps the weights.
  void write_context(const Tile& tile) {
    const bool is_mostly_zero = has_few_weights(tile);
    keep_weights(tile);
    if (task_.dropout != nullptr) apply_dropout(tile, weights_);
    if (is_mostly_zero) {
      sparse_products_.write_context(tile, weights_);
    } else {
      products_.write_context(tile, weights_);
    }
  }

  void forward_listed(const Tile& tile) {
    List lists[kTile];
    PendingRows rows;
    for (int r = 0; r < tile.rows; ++r) {
      lists[r] = visible_list(tile.first + r, r);
      if (task_.slots != nullptr) prefetch_rows(task_, tile.first + r, lists[r], d_);
    }
    for (int r = 0; r < tile.rows; ++r) compute_scores(lists[r], tile.first + r, rows);
    weigh(rows);
    for (int r = 0; r < tile.rows; ++r) {
      List& list = lists[r];
      const int i = tile.first + r;
      if (task_.probe != nullptr && list.count > 0) show(i, list.weights);
      draw_factors(list, i);
      if (call_.sparse) remove_zeros(list);
      write_context(list, i);
    }
  }

  /// Writes the context of query i: sum_j weights_j factors_j v_j.
  void write_context(const List& list, int i) {
    if (list.factors != nullptr) M::multiply_elements(list.count, list.factors, list.weights);
    M::combine(list.count, list.weights, list.index, task_.values_of(i), d_, task_.context.row(i));
  }

  // --- backward ---

  void run_backward() {
    const auto listed = [&](const Tile& tile) {
      for (int r = 0; r < tile.rows; ++r) backward_listed(tile.first + r);
    };
    for_each_tile(listed, [&](const Tile& tile) {
      restore_weights(tile);
      if (has_few_weights(tile)) {
        backward_tile(tile, sparse_products_);
      } else {
        backward_tile(tile, products_);
      }
    });
    products_.finish_gradients();
  }

  template <class Products>
  void backward_tile(const Tile& tile, Products& products) {
    products.write_weight_gradient(tile, gradient_);
    if (task_.dropout != nullptr) apply_dropout(tile, gradient_);
    for (int r = 0; r < tile.rows; ++r) {
      const int n = tile.row_count[r];
      if (n > 0) {
        auto row = row_call(tile.first + r, n, contiguous(tile, r, weights_, list_weights_));
        if (call_.needs_scores) row.scores = contiguous(tile, r, scores_, list_scores_);
        row.gradient = contiguous(tile, r, gradient_, list_gradient_);
        fill_positions(row, tile.first + r);
        call_.rows.backward(call_.options, row);
        if constexpr (!Products::kScalesGradients) M::scale_elements(n, call_.scale, row.gradient);
      }
      spread(tile, r, list_gradient_, gradient_);
    }
    if (task_.dropout != nullptr) apply_factors(tile, weights_);
    products.write_gradients(tile, weights_, gradient_);
  }

  void backward_listed(int i) {
    List list = visible_list(i);
    compute_weights(list, i);
    draw_factors(list, i);
    if (call_.sparse) remove_zeros(list);
    const S* const of_context = task_.context_gradient.row(i);
    S* const gradient = list_gradient_;
    M::dots(list.count, of_context, list.index, task_.v, d_, gradient);
    if (list.factors != nullptr) M::multiply_elements(list.count, list.factors, gradient);
    if (list.count > 0) {
      auto row = row_call(i, list.count, list.weights);
      row.scores = list.scores;
      row.gradient = gradient;
      if (call_.uses_positions) row.positions = positions_;
      call_.rows.backward(call_.options, row);
    }
    M::scale_elements(list.count, call_.scale, gradient);
    if (list.factors != nullptr) M::multiply_elements(list.count, list.factors, list.weights);
    M::combine(list.count, gradient, list.index, task_.k, d_, task_.q_gradient.row(i));
    M::scatter(list.count, gradient, list.index, task_.q.row(i), d_, task_.k_gradient);
    M::scatter(list.count, list.weights, list.index, of_context, d_, task_.v_gradient);
  }

  // --- tiles ---

  /// Calls dense(tile) for tiles that are worth their products, and listed(tile) for the others.
  template <class Listed, class Dense>
  void for_each_tile(Listed listed, Dense dense) {
    for (int i = 0; i < task_.queries;) {
      const Tile tile = next_tile<P>(task_, i);
      i += tile.rows;
      if (is_dense(task_, tile)) {
        if (keeps_in_place_) weights_ = kept_row(tile, 0);
        dense(tile);
      } else {
        listed(tile);
      }
    }
  }

  /// Sets weights_ to the tile's weights before dropout, 0 at hidden keys, and, if they will be needed, scores_.
  void compute_weights(const Tile& tile) {
    PendingRows rows;
    compute_scores(tile, rows);
    weigh(rows);
    spread_weights(tile);
  }
  /// The first step of compute_weights: a tile's (or, below, a list's) scores, which wait in `rows` to become weights.
  void compute_scores(const Tile& tile, PendingRows& rows) {
    products_.write_scores(tile, weights_);
    for (int r = 0; r < tile.rows; ++r) {
      if (tile.row_count[r] == 0) continue;
      if (wants_scores()) M::copy(tile.width, weights_ + r * stride_, scores_ + r * stride_);
      add_scores(tile.first + r, tile.row_count[r], contiguous(tile, r, weights_, list_weights_ + r * stride_), rows);
    }
  }
  void spread_weights(const Tile& tile) const {
    for (int r = 0; r < tile.rows; ++r) spread(tile, r, list_weights_ + r * stride_, weights_);
  }

  /// Writes the tile's weights to where the backward pass looks for them, if the task keeps weights.
  void keep_weights(const Tile& tile) {
    const KeptRows<S>& kept = task_.kept_rows;
    if constexpr (P::kRounds)
      if (kept.rounded.data != nullptr) return products_.keep_rounded(tile, weights_);
    if (kept.weights.data == nullptr || keeps_in_place_) return;
    for (int r = 0; r < tile.rows; ++r) M::copy(tile.width, weights_ + r * stride_, kept_row(tile, r));
  }
  /// Sets weights_ to the tile's weights before dropout: those that the forward pass kept, or else computed again.
  void restore_weights(const Tile& tile) {
    const KeptRows<S>& kept = task_.kept_rows;
    if constexpr (P::kRounds)
      if (kept.rounded.data != nullptr) return products_.restore_rounded(tile, weights_);
    if (keeps_in_place_) return;
    if (kept.weights.data == nullptr) return compute_weights(tile);
    for (int r = 0; r < tile.rows; ++r) M::copy(tile.width, kept_row(tile, r), weights_ + r * stride_);
  }
  S* kept_row(const Tile& tile, int r) const { return task_.kept_rows.weights.row(tile.first + r); }

  /// Returns the elements of `rows` that row r sees, contiguous: in place if that is one run, else a copy in `list`.
  S* contiguous(const Tile& tile, int r, S* rows, S* list) const {
    S* row = rows + r * stride_;
    if (!tile.row_has_gaps[r]) return row + tile.row_begin[r];
    S* next = list;
    for_each_key(tile.first + r, [&](int j) { *next++ = row[j - tile.begin]; });
    return list;
  }

  /// Writes these elements back to row r of `rows` if they are a copy, and 0 at keys that it does not see.
  void spread(const Tile& tile, int r, const S* list, S* rows) const {
    S* row = rows + r * stride_;
    if (tile.row_has_gaps[r]) {
      M::clear(tile.width, row);
      for_each_key(tile.first + r, [&](int j) { row[j - tile.begin] = *list++; });
    } else {
      const int end = tile.row_begin[r] + tile.row_count[r];
      M::clear(tile.row_begin[r], row);
      M::clear(tile.width - end, row + end);
    }
  }

  /// Draws the tile's dropout factors and multiplies `rows` by them.
  void apply_dropout(const Tile& tile, S* rows) {
    if (task_.positions != nullptr) {
      for (int r = 0; r < tile.rows; ++r) draw_factors(tile.first + r, {tile.begin, tile.width, 1}, tile_factors(tile, r));
    } else {
      const int before = keys_before(tile);
      M::draw_factors(task_.dropout->rule(), static_cast<S>(task_.dropout->scale()), tile.rows, before + tile.width,
                      query_position(tile.first), task_.position_step, tile.begin - before, factors_, stride_);
    }
    apply_factors(tile, rows);
  }

  void apply_factors(const Tile& tile, S* rows) {
    for (int r = 0; r < tile.rows; ++r) M::multiply_elements(tile.width, tile_factors(tile, r), rows + r * stride_);
  }

  S* tile_factors(const Tile& tile, int r) { return factors_ + r * stride_ + keys_before(tile); }
  /// Returns how many keys before the tile's first share its random numbers, which are drawn for four keys at a time.
  static int keys_before(const Tile& tile) { return tile.begin % 4; }

  /// Returns true if so few of the tile's weights are not zero that sparse_products_ are less work, and notes for these
  /// where they are.
  bool has_few_weights(const Tile& tile) const {
    constexpr int kFewestKeys = 64;  // in shorter rows, looking for zeros costs what leaving them out saves
    if (P::kSparseShare == 0 || !call_.sparse || tile.width < kFewestKeys) return false;
    return sparse_products_.find(tile, weights_) * P::kSparseShare < keys_seen(tile);
  }

  // --- lists ---

  /// Returns the keys that query i sees, by their rows of k and v, in the memory of list r.
  List visible_list(int i, int r = 0) {
    int32_t* const index = index_ + r * stride_;
    int count = 0;
    for_each_key(i, [&](int j) {
      positions_[count] = key_position(j);
      index[count++] = task_.slots != nullptr ? task_.slots[j] : j;
    });
    return {.count = count,
            .index = index,
            .weights = list_weights_ + r * stride_,
            .scores = wants_scores() ? list_scores_ : nullptr,
            .factors = nullptr};
  }

  /// Fills in the list's weights, and its scores if they will be needed.
  void compute_weights(List& list, int i) {
    PendingRows rows;
    compute_scores(list, i, rows);
    weigh(rows);
  }
  void compute_scores(List& list, int i, PendingRows& rows) {
    if (list.count == 0) return;
    M::dots(list.count, task_.query_row(i), list.index, task_.keys_of(i), d_, list.weights);
    M::scale_elements(list.count, call_.scale, list.weights);
    if (list.scores != nullptr) M::copy(list.count, list.weights, list.scores);
    add_scores(i, list.count, list.weights, rows);
  }

  void draw_factors(List& list, int i) {
    if (task_.dropout == nullptr) return;
    list.factors = list_factors_;
    S* next = list_factors_;
    for (int32_t s = task_.first_segment[i]; s < task_.first_segment[i + 1]; ++s) {
      draw_factors(i, task_.segments[s], next);
      next += task_.segments[s].count;
    }
  }

  /// Shortens the list to keys with weight. positions_ follow if no other list was made since this one.
  void remove_zeros(List& list) {
    int kept = 0;
    for (int j = 0; j < list.count; ++j) {
      if (list.weights[j] == 0) continue;
      list.weights[kept] = list.weights[j];
      if (list.scores != nullptr) list.scores[kept] = list.scores[j];
      if (list.factors != nullptr) list.factors[kept] = list.factors[j];
      positions_[kept] = positions_[j];
      list.index[kept++] = list.index[j];
    }
    list.count = kept;
  }

  // --- rows ---

  /// Adds query i's row of scores to the pending rows. With positions, of which there is memory for one row, turns it
  /// into weights at once.
  void add_scores(int i, int length, S* scores, PendingRows& rows) {
    if (!call_.uses_positions) {
      const types::RowContext<S> context = row_context(i);
      rows.places[rows.count++] = {.weights = scores,
                                   .length = length,
                                   .position = context.position,
                                   .numbers = context.numbers,
                                   .kept_number = context.kept_number};
      return;
    }
    auto row = row_call(i, length, scores);
    fill_positions(row, i);
    call_.rows.forward(call_.options, row);
  }
  /// Turns the pending rows of scores into weights.
  void weigh(const PendingRows& rows) { call_.rows.forward_all(call_.options, row_call(0, 0, nullptr), rows.places, rows.count); }

  bool wants_scores() const { return call_.needs_scores && task_.is_backward; }

  types::RowCall<S> row_call(int i, int length, S* weights) const {
    types::RowCall<S> row = {.weights = weights,
                             .gradient = nullptr,
                             .scores = nullptr,
                             .positions = nullptr,
                             .scratch = scratch_,
                             .length = length,
                             .context = {}};
    row.context = row_context(i);
    return row;
  }
  types::RowContext<S> row_context(int i) const {
    types::RowContext<S> context;
    context.training = call_.training;
    context.position = static_cast<S>(query_position(i));
    context.num_numbers = call_.num_numbers;
    context.numbers = task_.numbers_of(i);
    context.number_gradients = task_.number_gradients.data == nullptr ? nullptr : task_.number_gradients.row(i);
    context.kept_number = task_.kept_number.data == nullptr ? nullptr : task_.kept_number.row(i);
    context.is_recomputed = task_.is_backward;
    return context;
  }

  /// Sets row.positions to those of the keys that query i sees, if the type reads them.
  void fill_positions(types::RowCall<S>& row, int i) {
    if (!call_.uses_positions) return;
    S* next = positions_;
    for_each_key(i, [&](int j) { *next++ = key_position(j); });
    row.positions = positions_;
  }

  /// Calls f(j) for each key that query i sees.
  template <class F>
  void for_each_key(int i, F f) const {
    for (int32_t s = task_.first_segment[i]; s < task_.first_segment[i + 1]; ++s) {
      const KeySegment segment = task_.segments[s];
      for (int n = 0, j = segment.begin; n < segment.count; ++n, j += segment.stride) f(j);
    }
  }

  int32_t query_position(int i) const { return task_.first_position + i * task_.position_step; }
  S key_position(int j) const { return static_cast<S>(task_.positions != nullptr ? task_.positions[j] : j); }

  /// Draws the dropout factors of query i for the keys of one segment.
  void draw_factors(int i, KeySegment segment, S* factors) const {
    const int32_t query = query_position(i);
    if (task_.positions != nullptr) {
      task_.dropout->factors(query, task_.positions + segment.begin, segment.count, factors);
    } else {
      task_.dropout->factors(query, segment.begin, segment.count, segment.stride, factors);
    }
  }

  /// Shows the probe the weights of query i, or of the tile's rows.
  void show(int i, const S* weights) const {
    const int32_t first = task_.first_segment[i];
    task_.show(task_.probe, i, weights, task_.segments + first, task_.first_segment[i + 1] - first);
  }
  void show(const Tile& tile) const {
    if (task_.probe == nullptr) return;
    for (int r = 0; r < tile.rows; ++r)
      if (tile.row_count[r] > 0) show(tile.first + r, contiguous(tile, r, weights_, list_weights_));
  }

  const CallConstants<S>& call_;
  const Task<S>& task_;
  const int64_t stride_, rows_;
  const int d_;
  P products_;
  SparseProducts<M> sparse_products_;
  int32_t* index_;                                   // [rows, keys]
  const bool keeps_in_place_;                        // weights_ is then where the tile's are kept
  S *weights_, *scores_, *gradient_, *factors_;      // [rows, keys]
  S* list_weights_;                                  // [rows, keys]
  S *list_scores_, *list_gradient_, *list_factors_;  // [keys]
  S *positions_, *scratch_;                          // [keys]
};

}  // namespace lacuna::core
