#pragma once

#include "attention/patterns/pattern.h"

/// Every query sees every key.
namespace lacuna::patterns::full {

inline constexpr bool kNeedsDistance = false;

struct Options {};

class Pattern : public AttentionPattern {
 public:
  void append_visible(int32_t /*query*/, int32_t num_keys, std::vector<KeySegment>& segments) const override {
    append_segment(0, num_keys, 1, segments);
  }
  bool shows_every_key() const override { return true; }
  int64_t group(int32_t /*query*/) const override { return 0; }
};

inline std::vector<PatternExample> examples() {
  return {{.query = 1, .num_keys = 4, .keys = {0, 1, 2, 3}}, {.query = 3, .num_keys = 0}};
}

}  // namespace lacuna::patterns::full
