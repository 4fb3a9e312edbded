#pragma once

#include <algorithm>

#include "attention/pattern.h"
#include "config/describe.h"

/// Restricted self-attention (Vaswani et al. 2017, arXiv:1706.03762, section 4): keys at most `window` positions away.
namespace lacuna::patterns::local {

/// Query and key stand in the same sentence: without meaning on cross attention.
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
  explicit Pattern(const Options& options) : window_(options.window) {}

  void append_visible(int32_t query, int32_t num_keys, std::vector<KeySegment>& segments) const override {
    const int64_t begin = std::max<int64_t>(0, query - window_), end = std::min<int64_t>(num_keys, query + window_ + 1);
    if (begin < end) segments.push_back({static_cast<int32_t>(begin), static_cast<int32_t>(end - begin), 1});
  }

 private:
  int64_t window_;
};

}  // namespace lacuna::patterns::local
