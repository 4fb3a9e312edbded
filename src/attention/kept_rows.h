#pragma once

#include <ATen/Functions.h>

#include <algorithm>
#include <vector>

#include "attention/call.h"
#include "attention/core.h"
#include "attention/core_run.h"

namespace lacuna {

/// The weights of a call that the forward pass keeps for the backward pass: all weights of sentences with few keys, where reading them is
/// cheaper than computing them again; with `keeps_lists`, also the nonzero weights of the other sentences, at most 256 a query on average
/// over a sentence and head. They are of type S, or bf16 where the products of a sentence round them anyway.
template <class S>
class KeptRowsOfCall {
  using Rows = core::KeptRows<S>;

 public:
  /// Keeps nothing.
  KeptRowsOfCall() = default;
  /// `rounds`: core::Functions::rounds. `memory`: what the forward pass filled; where undefined, new memory is allocated.
  KeptRowsOfCall(const AttentionCall& call, bool keeps_lists, bool (*rounds)(int64_t, int64_t, bool), KeptWeights memory)
      : call_(&call), memory_(std::move(memory)) {
    Place end;
    for (int64_t b = 0; b < call.queries->num_sentences(); ++b) {
      places_.push_back(end);
      Place& place = places_.back();
      place.is_list = !has_few_keys(b);
      place.is_kept = !place.is_list || keeps_lists;
      place.is_rounded = !place.is_list && rounds != nullptr && rounds(queries(b), keys(b), call.rows_alike);
      if (!place.is_kept) continue;
      end.weights += call.q.size(1) * room(b);
      if (place.is_list) end.integers += call.q.size(1) * integers(b);
    }
    if (!memory_.weights.defined()) {
      memory_.weights = at::empty({end.weights}, c10::CppTypeToScalarType<S>::value);
      memory_.keys = at::empty({end.integers}, at::kInt);
    }
    weights_ = memory_.weights.template mutable_data_ptr<S>();
    integers_ = memory_.keys.template mutable_data_ptr<int32_t>();
  }

  Rows of(int64_t b, int64_t head) const {
    if (call_ == nullptr || !places_[static_cast<size_t>(b)].is_kept) return {};
    const Place& place = places_[static_cast<size_t>(b)];
    S* const weights = weights_ + place.weights + head * room(b);
    if (place.is_rounded) return {.weights = nullptr, .rounded = reinterpret_cast<uint16_t*>(weights), .stride = stride(b)};
    if (!place.is_list) return {.weights = weights, .stride = stride(b)};
    int32_t* const counts = integers_ + place.integers + head * integers(b);
    return {.weights = weights, .keys = counts + queries(b), .counts = counts, .room = room(b) - kVector};
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
    int64_t weights = 0, integers = 0;  // where the sentence's begin
    bool is_kept = false, is_list = false, is_rounded = false;
  };

  int64_t queries(int64_t b) const { return call_->queries->length(b); }
  int64_t keys(int64_t b) const { return call_->keys->count[static_cast<size_t>(b)]; }
  bool has_few_keys(int64_t b) const { return keys(b) <= kKeptKeys; }
  int64_t stride(int64_t b) const {
    if (places_[static_cast<size_t>(b)].is_rounded) return multiple_of(Rows::kRoundedRows, keys(b));
    return keys(b) <= kShort ? keys(b) : core::row_elements(keys(b));
  }
  /// For weights of one head.
  int64_t room(int64_t b) const {
    constexpr int64_t kInOne = sizeof(S) / sizeof(uint16_t);
    if (places_[static_cast<size_t>(b)].is_rounded) return multiple_of(Rows::kRoundedRows, queries(b)) * stride(b) / kInOne;
    return has_few_keys(b) ? multiple_of(Rows::kRows, queries(b)) * stride(b) : queries(b) * std::min(keys(b) / 3, kMostListed) + kVector;
  }
  static int64_t multiple_of(int64_t step, int64_t count) { return (count + step - 1) / step * step; }
  int64_t integers(int64_t b) const { return queries(b) + room(b); }

  const AttentionCall* call_ = nullptr;
  KeptWeights memory_;
  std::vector<Place> places_;  // of each sentence
  S* weights_ = nullptr;
  int32_t* integers_ = nullptr;
};

}  // namespace lacuna
