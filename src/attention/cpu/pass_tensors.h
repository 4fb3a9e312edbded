#pragma once

#include <ATen/Functions.h>

#include <utility>
#include <vector>

#include "attention/call.h"
#include "attention/cpu/task.h"
#include "attention/registry.h"

namespace lacuna {

/// The weights of a call that the forward pass keeps for the backward pass: those of sentences with at most kKeptKeys
/// keys, where reading weights is cheaper than computing them again, and of heads whose pattern shows each query one
/// run of keys. They are of type S, or bf16 where the products of a sentence round them anyway. All other weights are
/// computed again. Nothing is kept of calls whose type needs scores in the backward pass or that a probe sees (run.cpp
/// makes no KeptWeights for them), whose keys are named by slots, or, unless rows are alike, of single queries.
template <class S>
class KeptWeights {
  using Rows = core::KeptRows<S>;

 public:
  /// Keeps nothing.
  KeptWeights() = default;
  /// rounds: core::EntryPoints::rounds. memory: what memory() of the forward pass returned; undefined = allocate it.
  KeptWeights(const AttentionCall& call, bool (*rounds)(int64_t, int64_t, bool), Tensor memory)
      : num_heads_(call.q.size(1)), memory_(std::move(memory)) {
    places_.reserve(static_cast<size_t>(call.queries->num_sentences() * num_heads_));
    int64_t size = 0;
    for (int64_t b = 0; b < call.queries->num_sentences(); ++b) {
      const int64_t queries = call.queries->length(b), keys = call.keys->count[static_cast<size_t>(b)];
      const Layout layout = layout_of(queries, keys, rounds != nullptr && rounds(queries, keys, call.rows_alike));
      bool is_kept = false;
      for (int64_t head = 0; head < num_heads_; ++head) {
        if (head == 0 || !call.type->has_one_pattern()) is_kept = keeps(call, b, head);
        places_.push_back({.layout = layout, .begin = is_kept ? size : kNotKept});
        if (is_kept) size += layout.size;
      }
    }
    if (!memory_.defined()) memory_ = at::empty({size}, c10::CppTypeToScalarType<S>::value);
  }

  /// Returns the memory for the weights of a sentence and head; null data = they are not kept.
  Rows rows(int64_t b, int64_t head) const {
    if (places_.empty()) return {};
    const Place& place = places_[static_cast<size_t>(b * num_heads_ + head)];
    if (place.begin == kNotKept) return {};
    S* const weights = memory_.template data_ptr<S>() + place.begin;
    if (place.layout.is_rounded) return {.weights = {}, .rounded = {reinterpret_cast<uint16_t*>(weights), place.layout.stride}};
    return {.weights = {weights, place.layout.stride}, .rounded = {}};
  }
  /// The weights of all sentences and heads; undefined if nothing is kept.
  const Tensor& memory() const { return memory_; }

 private:
  static constexpr int64_t kNotKept = -1;
  /// How the weights of one sentence and head lie in memory.
  struct Layout {
    bool is_rounded;
    int64_t stride, size;  ///< stride in weights, size in elements of S
  };
  struct Place {
    Layout layout;
    int64_t begin;  ///< in elements of S
  };

  static bool keeps(const AttentionCall& call, int64_t b, int64_t head) {
    const int32_t queries = call.queries->length(b), keys = call.keys->count[static_cast<size_t>(b)];
    if (keys > kKeptKeys || queries == 0 || !call.keys->slots.empty()) return false;
    if (queries == 1 && !call.rows_alike) return false;  // a single query is no tile
    std::vector<KeySegment> of_last;  // if the last query sees one run, all queries do, or it would cost memory and nothing else
    visible_keys(call, b, head, query_position(call, b, queries - 1), of_last);
    return is_one_run(of_last);
  }

  static Layout layout_of(int64_t queries, int64_t keys, bool is_rounded) {
    constexpr int64_t kCopiedKeys = 64;  // up to here weights are copied: rows that the core can compute in would take much more memory
    if (is_rounded) {
      constexpr int64_t kInElement = sizeof(S) / sizeof(uint16_t);
      const int64_t stride = multiple_of(Rows::kRoundedRows, keys);
      return {.is_rounded = true, .stride = stride, .size = multiple_of(Rows::kRoundedRows, queries) * stride / kInElement};
    }
    const int64_t stride = keys <= kCopiedKeys ? keys : core::row_elements(keys);
    return {.is_rounded = false, .stride = stride, .size = multiple_of(Rows::kRows, queries) * stride};
  }
  static int64_t multiple_of(int64_t step, int64_t count) { return (count + step - 1) / step * step; }

  int64_t num_heads_ = 0;
  Tensor memory_;
  std::vector<Place> places_;  // [B, H]
};

/// The learned numbers of a call's rows (entmax's alpha) as the core reads them, and their gradients, in double.
template <class S>
class LearnedNumbers {
 public:
  explicit LearnedNumbers(const AttentionCall& call) : call_(call) {
    if (call.numbers.empty()) return;
    const Tensor& first = call.numbers.front();
    const int64_t count = size();
    if (count == 1 && first.dim() == 1 && first.scalar_type() == c10::CppTypeToScalarType<S>::value && first.is_contiguous()) {
      values_ = first.as_strided({call.q.size(0), num_heads(), 1}, {0, 1, 1});  // shared by all queries, and not copied for each
      return;
    }
    values_ = at::empty({call.q.size(0), num_heads(), count}, c10::CppTypeToScalarType<S>::value);
    for (int64_t n = 0; n < count; ++n) values_.select(2, n).copy_(call.numbers[static_cast<size_t>(n)]);
  }

  /// [Tq, H, numbers], or undefined if there are none.
  const Tensor& values() const { return values_; }

  /// Allocates the gradients, zero at first; backward tasks add to them.
  void make_gradients() {
    if (values_.defined()) gradients_ = at::zeros(values_.sizes(), at::kDouble);
  }

  /// Gives the task of a sentence whose first row of q is `query` its numbers and, once made, their gradients.
  void add_to(core::Task<S>& task, int64_t query, int64_t head) const {
    if (!values_.defined()) return;
    const S* const values = values_.template const_data_ptr<S>();
    task.numbers = {values + query * values_.stride(0) + head * values_.stride(1), values_.stride(0)};
    task.heads.numbers = values_.stride(1);
    if (!gradients_.defined()) return;
    const int64_t stride = gradients_.stride(0);
    task.number_gradients = {gradients_.data_ptr<double>() + query * stride + head * size(), stride};
  }

  /// Returns the gradient of each number, in its shape: that of a number [H] is summed over queries, in order.
  std::vector<Tensor> gradients() const {
    std::vector<Tensor> result;
    for (const Tensor& number : call_.numbers) {
      Tensor total = gradients_.select(2, static_cast<int64_t>(result.size()));
      if (number.dim() == 1) total = sum_over_queries(total);
      result.push_back(total.to(number.options()));
    }
    return result;
  }

 private:
  int64_t size() const { return static_cast<int64_t>(call_.numbers.size()); }
  int64_t num_heads() const { return call_.q.size(1); }

  Tensor sum_over_queries(const Tensor& each) const {
    Tensor total = at::zeros({num_heads()}, at::kDouble);
    const auto from = each.accessor<double, 2>();
    auto to = total.accessor<double, 1>();
    for (int64_t i = 0; i < each.size(0); ++i)
      for (int64_t head = 0; head < num_heads(); ++head) to[head] += from[i][head];
    return total;
  }

  const AttentionCall& call_;
  Tensor values_, gradients_;
};

/// The tensors that a pass over a call reads and writes beside those of the call.
template <class S>
struct PassTensors {
  explicit PassTensors(const AttentionCall& call) : numbers(call) {}

  bool is_backward = false;
  Tensor context;      ///< [Tq, H, d], forward: the result; backward: its gradient
  Tensor kept_number;  ///< [Tq, H], a number that each row's search found; undefined = rows keep none
  KeptWeights<S> kept_weights;
  LearnedNumbers<S> numbers;
  AttentionGradients gradients;     ///< backward
  bool has_uncleared_sums = false;  ///< backward: the gradients of k and v, which are sums, were not set to 0
};

}  // namespace lacuna
