#pragma once

#include "attention/cpu/core.h"
#include "attention/cpu/core_products.h"
#include "attention/cpu/core_tile.h"
#include "attention/patterns/pattern.h"
#include "attention/rows/dropout.h"

// Two roads for a row. *Tiles*: where queries that lie together see much the same keys, some rows at a time go through small matrix
// products, all in cache; where most weights turn out to be zero, through products that leave these out. *Lists*: where keys are named by
// slots or lie far apart, and where there is a single query, a row's keys are a list and only these are touched. The weights of tiles of
// short rows, and those that are not zero where these are few, are kept for the backward pass. Others are worked out again: that costs no
// more than writing and reading them, and memory stays proportional to the number of tokens.
//
// Compiled for several instruction sets: nothing here may call an inline function that is not a template on `M` or always inlined.
namespace lacuna::core {

/// `M` is a machine: row type and small products (machine_simd.h, machine_plain.h). `P` are a tile's products (core_products.h).
template <class M, class P = DirectProducts<M>>
class Core {
 public:
  using S = typename M::scalar;

  static void forward(const Call<S>& call, const Task<S>& task, const Workspace<S>& workspace) {
    Core(call, task, workspace).run_forward();
  }
  static void backward(const Call<S>& call, const Task<S>& task, const Workspace<S>& workspace) {
    Core(call, task, workspace).run_backward();
  }
  /// Of Workspace::memory.
  static int64_t memory_elements(int64_t row, int64_t rows, int64_t d_head) {
    return P::memory_elements(row, d_head) + row * (5 * rows + 5);
  }

 protected:
  static constexpr int kTile = P::kTile;
  static_assert(kTile <= kMostRows && kTile % KeptRows<S>::kRows == 0 && P::kLowTile % KeptRows<S>::kRows == 0,
                "a tile would reach beyond its workspace, or beyond where its rows are kept");

  using Tile = core::Tile<kTile>;

  using List = core::KeyList<S>;
  using WaitingRows = core::WaitingRows<S, kTile>;

  Core(const Call<S>& call, const Task<S>& task, const Workspace<S>& workspace)
      : call_(call),
        task_(task),
        stride_(workspace.row),
        rows_(workspace.rows),
        d_(call.d_head),
        products_(call, task, workspace),
        sparse_products_(call, task, workspace.rows_of, workspace.row),
        index_(workspace.index),
        keeps_in_place_(task.kept_rows.weights != nullptr && task.kept_rows.stride == workspace.row && task.dropout == nullptr) {
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
      weigh_tile(tile);
      show(tile);
      combine(tile);
    });
  }

  /// context of the tile's rows = weights * v
  void combine(const Tile& tile) {
    const int few = find_few_weights(tile);
    keep(tile, few);
    if (task_.dropout != nullptr) drop(tile, weights_);
    few >= 0 ? sparse_products_.write_context(tile, weights_) : products_.write_context(tile, weights_);
  }

  void forward_listed(const Tile& tile) {
    List lists[kTile];
    WaitingRows rows;
    for (int r = 0; r < tile.rows; ++r) {
      lists[r] = visible_list(tile.first + r, r);
      if (task_.slots != nullptr) task_.fetch_rows(tile.first + r, lists[r].index, lists[r].count, d_);
    }
    for (int r = 0; r < tile.rows; ++r) score_list(lists[r], tile.first + r, rows);
    weigh_waiting(rows);
    for (int r = 0; r < tile.rows; ++r) {
      List& list = lists[r];
      const int i = tile.first + r;
      if (task_.probe != nullptr && list.count > 0) show(i, list.weights);
      draw_factors(list, i);
      if (call_.sparse) drop_zeros(list);
      combine(list, i);
    }
  }

  /// context of query i = sum_j weights_j factors_j v_j
  void combine(const List& list, int i) {
    if (list.factors != nullptr) M::multiply_elements(list.count, list.factors, list.weights);
    M::combine(list.count, list.weights, list.index, task_.value_rows(i), task_.v_stride, d_, context_row(i));
  }

  // --- backward ---

  void run_backward() {
    const auto listed = [&](const Tile& tile) {
      for (int r = 0; r < tile.rows; ++r) backward_listed(tile.first + r);
    };
    for_each_tile(listed, [&](const Tile& tile) {
      find_weights(tile);
      find_few_weights(tile) >= 0 ? backward_tile(tile, sparse_products_) : backward_tile(tile, products_);
    });
    products_.finish_gradients();
  }

  template <class Products>
  void backward_tile(const Tile& tile, Products& products) {
    products.write_weight_gradient(tile, gradient_);
    if (task_.dropout != nullptr) drop(tile, gradient_);
    for (int r = 0; r < tile.rows; ++r) {
      const int n = tile.row_count[r];
      if (n > 0) {
        auto row = row_call(tile.first + r, n, side_by_side(tile, r, weights_, list_weights_));
        if (call_.needs_scores) row.scores = side_by_side(tile, r, scores_, list_scores_);
        row.gradient = side_by_side(tile, r, gradient_, list_gradient_);
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
    weigh_list(list, i);
    draw_factors(list, i);
    if (call_.sparse) drop_zeros(list);
    const S* of_context = gradient_row(i);
    S* gradient = list_gradient_;
    M::dots(list.count, of_context, list.index, task_.v, task_.v_stride, d_, gradient);
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
    M::combine(list.count, gradient, list.index, task_.k, task_.k_stride, d_, task_.q_gradient + i * task_.q_gradient_stride);
    M::scatter(list.count, gradient, list.index, task_.q + i * task_.q_stride, d_, task_.k_gradient, task_.gradient_stride);
    M::scatter(list.count, list.weights, list.index, of_context, d_, task_.v_gradient, task_.gradient_stride);
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

  /// weights_ = the tile's weights before dropout, 0 at keys that a row does not see; scores_ = the scores, if they will be needed.
  void weigh_tile(const Tile& tile) {
    WaitingRows rows;
    score_tile(tile, rows);
    weigh_waiting(rows);
    spread_weights(tile);
  }
  /// The first step of weigh_tile: the tile's scores, which wait in `rows` to become weights. score_list does the same for a list.
  void score_tile(const Tile& tile, WaitingRows& rows) {
    products_.write_scores(tile, weights_);
    for (int r = 0; r < tile.rows; ++r) {
      if (tile.row_count[r] == 0) continue;
      if (wants_scores()) M::copy(tile.width, weights_ + r * stride_, scores_ + r * stride_);
      add_scores(tile.first + r, tile.row_count[r], side_by_side(tile, r, weights_, list_weights_ + r * stride_), rows);
    }
  }
  void spread_weights(const Tile& tile) const {
    for (int r = 0; r < tile.rows; ++r) spread(tile, r, list_weights_ + r * stride_, weights_);
  }

  /// Leaves the tile's weights to the backward pass, if there is room for them; `few` are not zero, or -1.
  void keep(const Tile& tile, int few) {
    const KeptRows<S>& kept = task_.kept_rows;
    if constexpr (P::kRounds)
      if (kept.rounded != nullptr) return products_.keep_rounded(tile, weights_);
    if (kept.weights == nullptr || keeps_in_place_) return;
    const bool fits = few >= 0 && next_kept_ + few <= kept.room;
    for (int r = 0; r < tile.rows; ++r) {
      const S* const row = weights_ + r * stride_;
      if (kept.counts == nullptr) {
        M::copy(tile.width, row, kept_row(tile, r));
      } else {
        int32_t& count = kept.counts[tile.first + r];
        count = fits ? M::pack_nonzero(tile.width, row, kept.weights + next_kept_, kept.keys + next_kept_) : -1;
        if (fits) next_kept_ += count;
      }
    }
  }
  /// weights_ = what the forward pass kept, or else as weigh_tile makes it.
  void find_weights(const Tile& tile) {
    const KeptRows<S>& kept = task_.kept_rows;
    if constexpr (P::kRounds)
      if (kept.rounded != nullptr) return products_.find_rounded(tile, weights_);
    if (keeps_in_place_) return;
    if (kept.weights == nullptr || (kept.counts != nullptr && kept.counts[tile.first] < 0)) return weigh_tile(tile);
    for (int r = 0; r < tile.rows; ++r) {
      S* const row = weights_ + r * stride_;
      if (kept.counts == nullptr) {
        M::copy(tile.width, kept_row(tile, r), row);
      } else {
        M::clear(tile.width, row);
        for (int n = kept.counts[tile.first + r]; n > 0; --n, ++next_kept_) row[kept.keys[next_kept_]] = kept.weights[next_kept_];
      }
    }
  }
  S* kept_row(const Tile& tile, int r) const { return task_.kept_rows.weights + (tile.first + r) * task_.kept_rows.stride; }

  /// The elements of `rows` that row r sees: where they are if that is one run, else a copy in `list`.
  S* side_by_side(const Tile& tile, int r, S* rows, S* list) const {
    S* row = rows + r * stride_;
    if (!tile.row_has_gaps[r]) return row + tile.row_begin[r];
    S* next = list;
    for_each_key(tile.first + r, [&](int j) { *next++ = row[j - tile.begin]; });
    return list;
  }

  /// Puts these elements back if they are a copy, and 0 where row r does not see.
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

  /// Draws the tile's dropout factors and multiplies `rows` with them.
  void drop(const Tile& tile, S* rows) {
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
  /// Random numbers are drawn for four keys at a time: so many before the tile's first share its own.
  static int keys_before(const Tile& tile) { return tile.begin % 4; }

  /// How many weights SparseProducts finds in a weighed tile; -1 = too many to be less work, or in rows too short to be worth a look.
  int find_few_weights(const Tile& tile) const {
    constexpr int kLong = 64;
    if (P::kSparseShare == 0 || !call_.sparse || tile.width < kLong) return -1;
    const int found = sparse_products_.find(tile, weights_);
    return found * P::kSparseShare < keys_seen(tile) ? found : -1;
  }

  // --- lists ---

  /// The keys that query i sees, by their rows of k and v: the tile's list r.
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
  void weigh_list(List& list, int i) {
    WaitingRows rows;
    score_list(list, i, rows);
    weigh_waiting(rows);
  }
  void score_list(List& list, int i, WaitingRows& rows) {
    if (list.count == 0) return;
    M::dots(list.count, task_.query_row(i), list.index, task_.key_rows(i), task_.k_stride, d_, list.weights);
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

  /// Shortens the list to keys with weight. positions_ follow if they are this list's: if none was made after it.
  void drop_zeros(List& list) {
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

  /// Query i's row of scores joins the rows that wait; or, with positions, of which there is memory for one row, becomes weights here.
  void add_scores(int i, int length, S* scores, WaitingRows& rows) {
    if (!call_.uses_positions) {
      const types::RowContext<S> context = row_context(i);
      rows.places[rows.count++] = {scores, length, context.position, context.numbers, context.kept};
      return;
    }
    auto row = row_call(i, length, scores);
    fill_positions(row, i);
    call_.rows.forward(call_.options, row);
  }
  void weigh_waiting(const WaitingRows& rows) { call_.rows.forward_all(call_.options, row_call(0, 0, nullptr), rows.places, rows.count); }

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
    context.number_gradients = task_.number_gradients == nullptr ? nullptr : task_.number_gradients + i * task_.number_gradients_stride;
    context.kept = task_.kept == nullptr ? nullptr : task_.kept + i * task_.kept_stride;
    context.is_again = task_.is_backward;
    return context;
  }

  /// The positions of the keys that query i sees.
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

  /// The dropout factors of query i for the keys of one segment.
  void draw_factors(int i, KeySegment segment, S* factors) const {
    const int32_t query = query_position(i);
    if (task_.positions != nullptr) {
      task_.dropout->factors(query, task_.positions + segment.begin, segment.count, factors);
    } else {
      task_.dropout->factors(query, segment.begin, segment.count, segment.stride, factors);
    }
  }

  void show(int i, const S* weights) const {
    const int32_t first = task_.first_segment[i];
    task_.show(task_.probe, i, weights, task_.segments + first, task_.first_segment[i + 1] - first);
  }
  void show(const Tile& tile) const {
    if (task_.probe == nullptr) return;
    for (int r = 0; r < tile.rows; ++r)
      if (tile.row_count[r] > 0) show(tile.first + r, side_by_side(tile, r, weights_, list_weights_));
  }

  S* context_row(int i) const { return task_.context + i * task_.context_stride; }
  const S* gradient_row(int i) const { return task_.context_gradient + i * task_.context_stride; }

  const Call<S>& call_;
  const Task<S>& task_;
  const int64_t stride_, rows_;
  const int d_;
  P products_;
  SparseProducts<M> sparse_products_;
  int32_t* index_;                                   // [rows, keys]
  const bool keeps_in_place_;                        // weights_ is then where the tile's are kept
  int64_t next_kept_ = 0;                            // of KeptRows with counts
  S *weights_, *scores_, *gradient_, *factors_;      // [rows, keys]
  S* list_weights_;                                  // [rows, keys]
  S *list_scores_, *list_gradient_, *list_factors_;  // [keys]
  S *positions_, *scratch_;                          // [keys]
};

}  // namespace lacuna::core
