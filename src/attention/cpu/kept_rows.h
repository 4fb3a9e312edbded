#pragma once

#include <ATen/Functions.h>

#include <algorithm>
#include <vector>

#include "attention/call.h"
#include "attention/cpu/core.h"
#include "attention/cpu/core_run.h"
#include "attention/cpu/parts.h"
#include "attention/registry.h"

namespace lacuna {

/// The weights of a call that the forward pass keeps for the backward pass: all weights of sentences with few keys, where reading them is
/// cheaper than computing them again; with `keeps_lists`, also the nonzero weights of the other sentences, at most 256 a query on average
/// over a sentence and head. Only sentences and heads that go in tiles keep any: the core works the weights of parts and lists out again.
/// goes_in_tiles() foresees which they are. Where it is wrong, memory stays unused or weights are worked out again. They are of type S, or
/// bf16 where the products of a sentence round them anyway.
template <class S>
class KeptRowsOfCall {
  using Rows = core::KeptRows<S>;

 public:
  /// Keeps nothing.
  KeptRowsOfCall() = default;
  /// `rounds`: core::Functions::rounds. `memory`: what the forward pass filled; where undefined, new memory is allocated.
  KeptRowsOfCall(const AttentionCall& call, bool keeps_lists, bool (*rounds)(int64_t, int64_t, bool), KeptWeights memory)
      : call_(&call), memory_(std::move(memory)) {
    const int64_t heads = call.q.size(1);
    places_.reserve(static_cast<size_t>(call.queries->num_sentences() * heads));
    Place end;
    for (int64_t b = 0; b < call.queries->num_sentences(); ++b) {
      end.is_list = !has_few_keys(b);
      end.is_rounded = !end.is_list && rounds != nullptr && rounds(queries(b), keys(b), call.rows_alike);
      const bool is_like_last = b > 0 && sees_alike(b, b - 1);  // as often in a batch: then what was found for it holds
      for (int64_t head = 0; head < heads; ++head) {
        if (is_like_last) {
          end.is_kept = places_[places_.size() - static_cast<size_t>(heads)].is_kept;
        } else if (head == 0 || !call.type->has_one_pattern()) {
          end.is_kept = (!end.is_list || keeps_lists) && goes_in_tiles(call, b, head);
        }
        places_.push_back(end);
        if (!end.is_kept) continue;
        end.weights += room(b, end.is_rounded);
        if (end.is_list) end.integers += queries(b) + room(b, false);
      }
    }
    if (!memory_.weights.defined()) {
      memory_.weights = at::empty({end.weights}, c10::CppTypeToScalarType<S>::value);
      memory_.keys = at::empty({end.integers}, at::kInt);
    }
    weights_ = memory_.weights.template mutable_data_ptr<S>();
    integers_ = memory_.keys.template mutable_data_ptr<int32_t>();
  }

  Rows of(int64_t b, int64_t head) const {
    if (call_ == nullptr) return {};
    const Place& place = places_[static_cast<size_t>(b * call_->q.size(1) + head)];
    if (!place.is_kept) return {};
    S* const weights = weights_ + place.weights;
    const int64_t row = stride(b, place.is_rounded);
    if (place.is_rounded) return {.weights = nullptr, .rounded = reinterpret_cast<uint16_t*>(weights), .stride = row};
    if (!place.is_list) return {.weights = weights, .stride = row};
    int32_t* const counts = integers_ + place.integers;
    return {.weights = weights, .keys = counts + queries(b), .counts = counts, .room = room(b, false) - kVector};
  }
  /// Adds the weights of a sentence and head to those that are prefetched, if all of them are kept.
  [[gnu::always_inline]] void add(int64_t b, int64_t head, core::RowsAhead& to) const {
    const Rows rows = of(b, head);
    if (rows.rounded != nullptr) to.add(rows.rounded, queries(b) * rows.stride * static_cast<int64_t>(sizeof(uint16_t)));
    if (rows.weights != nullptr && rows.counts == nullptr) to.add(rows.weights, queries(b) * rows.stride * static_cast<int64_t>(sizeof(S)));
  }
  const KeptWeights& memory() const { return memory_; }

 private:
  static constexpr int64_t kMostListed = 256, kVector = 64;
  static constexpr int64_t kShort = 64;  // rows are made elsewhere and copied: in place, each would take much more than its keys
  struct Place {
    int64_t weights = 0, integers = 0;  // where those of a sentence and head begin
    bool is_kept = false, is_list = false, is_rounded = false;
  };

  int64_t queries(int64_t b) const { return call_->queries->length(b); }
  int64_t keys(int64_t b) const { return call_->keys->count[static_cast<size_t>(b)]; }
  /// True if the queries of sentences a and b see the same keys, counted from each sentence's first.
  bool sees_alike(int64_t a, int64_t b) const {
    return queries(a) == queries(b) && keys(a) == keys(b) && query_position(*call_, a, 0) == query_position(*call_, b, 0);
  }
  bool has_few_keys(int64_t b) const { return keys(b) <= kKeptKeys; }
  int64_t stride(int64_t b, bool is_rounded) const {
    if (is_rounded) return multiple_of(Rows::kRoundedRows, keys(b));
    return keys(b) <= kShort ? keys(b) : core::row_elements(keys(b));
  }
  /// For weights of one head.
  int64_t room(int64_t b, bool is_rounded) const {
    constexpr int64_t kInOne = sizeof(S) / sizeof(uint16_t);
    if (is_rounded) return multiple_of(Rows::kRoundedRows, queries(b)) * stride(b, true) / kInOne;
    if (!has_few_keys(b)) return queries(b) * std::min(keys(b) / 3, kMostListed) + kVector;
    return multiple_of(Rows::kRows, queries(b)) * stride(b, false);
  }
  static int64_t multiple_of(int64_t step, int64_t count) { return (count + step - 1) / step * step; }

  const AttentionCall* call_ = nullptr;
  KeptWeights memory_;
  std::vector<Place> places_;  // of each sentence's heads
  S* weights_ = nullptr;
  int32_t* integers_ = nullptr;
};

}  // namespace lacuna
