#pragma once

#include <algorithm>

#include "attention/patterns/pattern.h"
#include "config/describe.h"

/// Strided self-attention: the keys nearby and every `stride`-th one far away, each once.
///
///   query i sees key j      if |i - j| <= window  or  (i - j) mod stride = 0
///
/// Child et al. 2019, arXiv:1904.10509, section 4.3; there the two halves are heads or layers of their own, here (as in
/// their merged heads) one query sees both. With window and stride near sqrt(n), any position reaches any other in two
/// layers at the price of n sqrt(n) products.
namespace lacuna::patterns::strided {

inline constexpr bool kNeedsDistance = true;

struct Options {
  int64_t window = 4;
  int64_t stride = 4;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("window", self.window, at_least(0), "all keys at most so many positions before or after the query; 0 = its own position only");
    visit("stride", self.stride, at_least(1), "beyond the window, positions from a visible key to the next; 1 = every key");
  }
};

class Pattern : public AttentionPattern {
 public:
  explicit Pattern(const Options& options) : window_(bounded_positions(options.window)), stride_(bounded_positions(options.stride)) {}

  void append_visible(int32_t query, int32_t num_keys, std::vector<KeySegment>& segments) const override {
    const int64_t near_begin = std::max<int64_t>(0, query - window_), near_end = query + window_ + 1;
    const int64_t step_beyond = (window_ / stride_ + 1) * stride_;  // the first multiple of stride that is more than window
    append_segment(query % stride_, std::min<int64_t>(num_keys, near_begin), stride_, segments);
    append_segment(near_begin, std::min<int64_t>(num_keys, near_end), 1, segments);
    append_segment(query + step_beyond, num_keys, stride_, segments);
  }

 private:
  int64_t window_, stride_;
};

inline std::vector<PatternExample> examples() {
  return {{.query = 7, .num_keys = 16, .keys = {1, 4, 6, 7, 8, 10, 13}, .options = "{window: 1, stride: 3}"},
          {.query = 7, .num_keys = 8, .keys = {1, 4, 6, 7}, .options = "{window: 1, stride: 3}"},
          {.query = 5, .num_keys = 12, .keys = {1, 3, 4, 5, 6, 7, 9}, .options = "{window: 2, stride: 4}"},
          {.query = 6, .num_keys = 12, .keys = {0, 3, 4, 5, 6, 7, 8, 9}, .options = "{window: 3, stride: 3}"},
          {.query = 5, .num_keys = 12, .keys = {1, 5, 9}, .options = "{window: 0, stride: 4}"},
          {.query = 9, .num_keys = 18, .keys = {1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 17}}};
}

}  // namespace lacuna::patterns::strided
