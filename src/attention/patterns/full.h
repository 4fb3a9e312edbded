#pragma once

#include "attention/pattern.h"

/// Every query sees every key.
namespace lacuna::patterns::full {

inline constexpr bool kNeedsDistance = false;

struct Options {};

class Pattern : public AttentionPattern {
 public:
  void append_visible(int32_t /*query*/, int32_t num_keys, std::vector<KeySegment>& segments) const override {
    if (num_keys > 0) segments.push_back({0, num_keys, 1});
  }
};

}  // namespace lacuna::patterns::full
