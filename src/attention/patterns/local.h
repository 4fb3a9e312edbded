#pragma once

#include <algorithm>

#include "attention/patterns/pattern.h"
#include "config/describe.h"

/// Restricted self-attention (Vaswani et al. 2017, arXiv:1706.03762, section 4): keys at most `window` positions away.
namespace lacuna::patterns::local {

inline constexpr bool kNeedsDistance = true;

struct Options {
  int64_t window = 8;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("window", self.window, at_least(0), "keys at most so many positions before or after the query; 0 = its own position only");
  }
};

class Pattern : public AttentionPattern {
 public:
  explicit Pattern(const Options& options) : window_(bounded_positions(options.window)) {}

  void append_visible(int32_t query, int32_t num_keys, std::vector<KeySegment>& segments) const override {
    append_segment(std::max<int64_t>(0, query - window_), std::min<int64_t>(num_keys, query + window_ + 1), 1, segments);
  }

 private:
  int64_t window_;
};

inline std::vector<PatternExample> examples() {
  return {{.query = 1, .num_keys = 6, .keys = {0, 1, 2, 3}, .options = "{window: 2}"},
          {.query = 5, .num_keys = 6, .keys = {3, 4, 5}, .options = "{window: 2}"},
          {.query = 2, .num_keys = 6, .keys = {2}, .options = "{window: 0}"},
          {.query = 9, .num_keys = 30, .keys = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}}};
}

}  // namespace lacuna::patterns::local
