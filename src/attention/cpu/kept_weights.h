#pragma once

#include <ATen/Functions.h>

#include <utility>
#include <vector>

#include "attention/call.h"
#include "attention/cpu/run.h"
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

}  // namespace lacuna
