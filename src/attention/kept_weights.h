#pragma once

#include <ATen/Functions.h>

#include <vector>

#include "attention/call.h"

namespace lacuna {

/// The weights that a call's forward pass leaves to its backward pass: of the sentences with few keys, where reading them costs less than
/// working them out again, [queries, keys] for each head. In numbers of type S.
template <class S>
class KeptWeights {
 public:
  /// Keeps nothing.
  KeptWeights() = default;
  /// `memory` is what the forward pass filled; undefined = makes it.
  KeptWeights(const AttentionCall& call, Tensor memory) : call_(&call), memory_(std::move(memory)) {
    constexpr int32_t kFewKeys = 128;
    int64_t total = 0;
    for (int64_t b = 0; b < call.queries->num_sentences(); ++b) {
      const bool keeps = call.keys->count[static_cast<size_t>(b)] <= kFewKeys;
      begin_.push_back(keeps ? total : -1);
      if (keeps) total += call.q.size(1) * weights_of_head(b);
    }
    if (!memory_.defined()) memory_ = at::empty({total}, c10::CppTypeToScalarType<S>::value);
    data_ = memory_.template mutable_data_ptr<S>();
  }

  /// Null if there are none.
  S* of(int64_t b, int64_t head) const {
    if (call_ == nullptr || begin_[static_cast<size_t>(b)] < 0) return nullptr;
    return data_ + begin_[static_cast<size_t>(b)] + head * weights_of_head(b);
  }
  const Tensor& memory() const { return memory_; }

 private:
  int64_t weights_of_head(int64_t b) const { return int64_t{call_->queries->length(b)} * call_->keys->count[static_cast<size_t>(b)]; }

  const AttentionCall* call_ = nullptr;
  Tensor memory_;
  std::vector<int64_t> begin_;  // of each sentence; -1 = none are kept
  S* data_ = nullptr;
};

}  // namespace lacuna
