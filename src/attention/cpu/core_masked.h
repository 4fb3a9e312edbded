#pragma once

#include "attention/cpu/core_cpu.h"

// Types with a mask, on the same two roads: after each row of the base's weights come the mask's scores, from queries and keys of their
// own, and the type's map over both. Backward works the same way round again. One-row types do not pass here.
namespace lacuna::core {

template <class M>
class MaskedCore : private Core<M> {
 public:
  using S = typename M::scalar;

  static void forward(const Call<S>& call, const Task<S>& task, const Workspace<S>& workspace) {
    MaskedCore(call, task, workspace).run_forward();
  }
  static void backward(const Call<S>& call, const Task<S>& task, const Workspace<S>& workspace) {
    MaskedCore(call, task, workspace).run_backward();
  }
  /// Of Workspace::mask_memory.
  static int64_t mask_memory_elements(int64_t row, int64_t rows, int64_t d_head) { return row * (d_head + 3 * rows + 3); }

 private:
  using Base = Core<M>;
  using Base::apply_factors, Base::draw_factors, Base::drop, Base::drop_zeros, Base::fill_positions, Base::for_each_tile,
      Base::gradient_row, Base::row_call, Base::side_by_side, Base::spread, Base::visible_list;
  using Base::call_, Base::d_, Base::gradient_, Base::list_gradient_, Base::list_scores_, Base::list_weights_, Base::products_,
      Base::scores_, Base::stride_, Base::task_, Base::weights_;
  using typename Base::List, typename Base::Tile;

  /// One row, its elements side by side.
  struct MaskedRow {
    int query, count;
    S *base, *weights, *mask;
    S *scores, *gradient, *mask_gradient;  // backward; scores are read if the base needs them
  };

  MaskedCore(const Call<S>& call, const Task<S>& task, const Workspace<S>& workspace) : Base(call, task, workspace) {
    S* next = workspace.mask_memory;
    const auto take = [&](int64_t rows) {
      S* memory = next;
      next += rows * workspace.row;
      return memory;
    };
    mask_keys_ = take(d_);
    base_ = take(workspace.rows);
    mask_ = take(workspace.rows);
    mask_gradient_ = take(workspace.rows);
    list_base_ = take(1);
    list_mask_ = take(1);
    list_mask_gradient_ = take(1);
  }

  // --- forward ---

  void run_forward() {
    const auto listed = [&](const Tile& tile) {
      for (int r = 0; r < tile.rows; ++r) forward_listed(tile.first + r);
    };
    for_each_tile(listed, [&](const Tile& tile) {
      weigh_tile(tile);
      show(tile);
      Base::combine(tile);
    });
  }

  void forward_listed(int i) {
    List list = visible_list(i);
    weigh_list(list, i);
    if (task_.probe != nullptr && list.count > 0) show(i, list.weights, list_base_, list_mask_);
    draw_factors(list, i);
    if (call_.sparse) drop_zeros(list);
    Base::combine(list, i);
  }

  // --- backward ---

  void run_backward() {
    const auto listed = [&](const Tile& tile) {
      for (int r = 0; r < tile.rows; ++r) backward_listed(tile.first + r);
    };
    for_each_tile(listed, [&](const Tile& tile) {
      weigh_tile(tile);
      backward_tile(tile);
    });
  }

  void backward_tile(const Tile& tile) {
    products_.write_weight_gradient(tile, gradient_);
    if (task_.dropout != nullptr) drop(tile, gradient_);
    for (int r = 0; r < tile.rows; ++r) {
      if (tile.row_count[r] > 0) backward_row(masked_row(tile, r));
      spread(tile, r, list_gradient_, gradient_);
      if (call_.is_mask_pass) spread(tile, r, list_mask_gradient_, mask_gradient_);
    }
    if (task_.dropout != nullptr) apply_factors(tile, weights_);
    add_products(tile);
  }

  /// From the gradients of the tile's weights and scores to those of q, k, v and, in the mask pass, of the mask's queries and keys.
  void add_products(const Tile& tile) {
    if (task_.v_gradient != nullptr) products_.add_value_gradient(tile, weights_);
    products_.write_query_gradient(tile, gradient_);
    if (task_.k_gradient != nullptr) products_.add_key_gradient(tile, gradient_);
    if (!call_.is_mask_pass) return;
    products_.write_rows(tile, mask_gradient_, task_.mask_k, task_.mask_k_stride, task_.mask_q_gradient);
    products_.add_to_keys(tile, mask_gradient_, task_.mask_q, task_.mask_q_stride, task_.mask_k_gradient);
  }

  void backward_listed(int i) {
    List list = visible_list(i);
    weigh_list(list, i);
    draw_factors(list, i);
    M::dots(list.count, gradient_row(i), list.index, task_.v, task_.v_stride, d_, list_gradient_);
    if (list.factors != nullptr) M::multiply_elements(list.count, list.factors, list_gradient_);
    if (list.count > 0)
      backward_row({i, list.count, list_base_, list.weights, list_mask_, list.scores, list_gradient_, list_mask_gradient_});
    if (list.factors != nullptr) M::multiply_elements(list.count, list.factors, list.weights);
    if (task_.v_gradient != nullptr)
      M::scatter(list.count, list.weights, list.index, gradient_row(i), d_, task_.v_gradient, task_.gradient_stride);
    M::combine(list.count, list_gradient_, list.index, task_.k, task_.k_stride, d_, task_.q_gradient + i * task_.q_gradient_stride);
    if (task_.k_gradient != nullptr)
      M::scatter(list.count, list_gradient_, list.index, task_.q + i * task_.q_stride, d_, task_.k_gradient, task_.gradient_stride);
    if (!call_.is_mask_pass) return;
    M::combine(list.count, list_mask_gradient_, list.index, task_.mask_k, task_.mask_k_stride, d_,
               task_.mask_q_gradient + i * task_.q_gradient_stride);
    M::scatter(list.count, list_mask_gradient_, list.index, task_.mask_q + i * task_.mask_q_stride, d_, task_.mask_k_gradient,
               task_.gradient_stride);
  }

  // --- rows ---

  /// weights_ = the tile's weights before dropout, 0 at keys that a row does not see; base_ and mask_ hold what they were made from.
  void weigh_tile(const Tile& tile) {
    Base::weigh_tile(tile);
    transpose_mask_keys();
    M::multiply(tile.rows, d_, tile.width, {task_.mask_q + tile.first * task_.mask_q_stride, task_.mask_q_stride, 1},
                mask_keys_ + tile.begin, stride_, mask_, stride_, false, nullptr);
    for (int r = 0; r < tile.rows; ++r) {
      if (tile.row_count[r] == 0) continue;
      MaskedRow row = {tile.first + r,    tile.row_count[r], base_row(r), side_by_side(tile, r, weights_, list_weights_),
                       mask_row(tile, r), nullptr,           nullptr,     nullptr};
      M::copy(row.count, row.weights, row.base);
      if (tile.row_has_gaps[r]) M::copy(row.count, side_by_side(tile, r, mask_, list_mask_), row.mask);
      call_.mask_rows.forward(call_.mask_options, call_on(row));
      spread(tile, r, list_weights_, weights_);
    }
  }

  /// The same for a list.
  void weigh_list(List& list, int i) {
    Base::weigh_list(list, i);
    if (list.count == 0) return;
    M::copy(list.count, list.weights, list_base_);
    M::dots(list.count, task_.mask_q + i * task_.mask_q_stride, list.index, task_.mask_k, task_.mask_k_stride, d_, list_mask_);
    M::scale_elements(list.count, call_.scale, list_mask_);
    call_.mask_rows.forward(call_.mask_options, call_on({i, list.count, list_base_, list.weights, list_mask_, nullptr, nullptr, nullptr}));
  }

  /// d loss / d weights -> d loss / d scores, of base and mask.
  void backward_row(const MaskedRow& row) {
    M::copy(row.count, row.gradient, row.mask_gradient);
    call_.mask_rows.backward(call_.mask_options, call_on(row));
    auto base = row_call(row.query, row.count, row.base);
    base.scores = row.scores;
    base.gradient = row.gradient;
    fill_positions(base, row.query);
    call_.rows.backward(call_.options, base);
    M::scale_elements(row.count, call_.scale, row.gradient);
    M::scale_elements(row.count, call_.scale, row.mask_gradient);
  }

  types::RowCall<S> call_on(const MaskedRow& row) const {
    auto call = row_call(row.query, row.count, row.weights);
    call.base = row.base;
    call.mask = row.mask;
    call.gradient = row.gradient;
    call.mask_gradient = row.mask_gradient;
    auto& context = call.context;
    context.numbers += call_.num_numbers;  // the type's own stand behind the base's
    if (context.number_gradients != nullptr) context.number_gradients += call_.num_numbers;
    context.is_mask_pass = call_.is_mask_pass;
    context.step = call_.step;
    if (task_.results != nullptr) context.results = task_.results + row.query * task_.results_stride;
    if (task_.result_gradients != nullptr) context.result_gradients = task_.result_gradients + row.query * task_.results_stride;
    return call;
  }

  /// Row r of a weighed tile, for its backward pass.
  MaskedRow masked_row(const Tile& tile, int r) {
    S* scores = call_.needs_scores ? side_by_side(tile, r, scores_, list_scores_) : nullptr;
    S* mask_gradient = tile.row_has_gaps[r] ? list_mask_gradient_ : mask_gradient_ + r * stride_ + tile.row_begin[r];
    return {tile.first + r,
            tile.row_count[r],
            base_row(r),
            side_by_side(tile, r, weights_, list_weights_),
            mask_row(tile, r),
            scores,
            side_by_side(tile, r, gradient_, list_gradient_),
            mask_gradient};
  }

  /// Where row r keeps the base's weights, and its mask: side by side.
  S* base_row(int r) const { return base_ + r * stride_; }
  S* mask_row(const Tile& tile, int r) const { return mask_ + r * stride_ + (tile.row_has_gaps[r] ? 0 : tile.row_begin[r]); }

  void transpose_mask_keys() {
    if (is_mask_transposed_) return;
    is_mask_transposed_ = true;
    M::transpose(task_.keys, d_, task_.mask_k, task_.mask_k_stride, call_.scale, mask_keys_, stride_);
  }

  void show(int i, const S* weights, const S* base, const S* mask) const {
    Base::show(i, weights);
    const int32_t first = task_.first_segment[i];
    task_.show_mask(task_.probe, i, base, mask, task_.segments + first, task_.first_segment[i + 1] - first);
  }
  void show(const Tile& tile) const {
    if (task_.probe == nullptr) return;
    for (int r = 0; r < tile.rows; ++r)
      if (tile.row_count[r] > 0) show(tile.first + r, side_by_side(tile, r, weights_, list_weights_), base_row(r), mask_row(tile, r));
  }

  bool is_mask_transposed_ = false;
  S* mask_keys_;                                     // [d, keys] transposed, times scale
  S *base_, *mask_, *mask_gradient_;                 // [rows, keys]
  S *list_base_, *list_mask_, *list_mask_gradient_;  // [keys]
};

}  // namespace lacuna::core
