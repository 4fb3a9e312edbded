#pragma once

#include "attention/forward_context.h"
#include "base/random.h"
#include "kernels/dropout.h"

namespace lacuna {

enum class Stack : uint64_t { kEncoder = 1, kDecoder = 2 };
/// A place in a layer where features are dropped: the outputs of its sub-layers, and between the feed-forward matrices.
/// `kEmbedding` belongs to the stack itself.
enum class DropoutPlace : uint64_t { kEmbedding = 1, kSelfAttention, kCrossAttention, kFeedForward, kActivation };

/// One place in the model where features are dropped. It is part of the key of the random numbers.
struct DropoutSite {
  Stack stack;
  int layer;
  DropoutPlace place;

  /// Returns the dropout of this pass: none outside of training.
  Dropout dropout(double rate, const RaggedShapePtr& shape, const ForwardContext& context) const {
    if (!context.training || rate == 0) return {};
    const uint64_t site = static_cast<uint64_t>(stack) << 32 | static_cast<uint64_t>(layer) << 8 | static_cast<uint64_t>(place);
    return {rate, random_key(context.seed, RandomUse::kDropout, static_cast<uint64_t>(context.step), site), shape};
  }
};

}  // namespace lacuna
