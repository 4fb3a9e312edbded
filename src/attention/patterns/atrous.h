#pragma once

#include "attention/patterns/pattern.h"
#include "config/describe.h"

/// Atrous ("with holes") self-attention: every `stride`-th key, counted from the query's own position, before it and
/// after it.
///
///   query i sees key j      if (i - j) mod stride = 0
///
/// The strided half of Child et al. 2019, arXiv:1904.10509, section 4.3, on its own. The sentence falls into `stride`
/// shorter ones that do not see each other: n²/stride products in place of n².
namespace lacuna::patterns::atrous {

inline constexpr bool kNeedsDistance = true;

struct Options {
  int64_t stride = 4;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("stride", self.stride, at_least(1), "positions from a visible key to the next; 1 = every key");
  }
};

class Pattern : public AttentionPattern {
 public:
  explicit Pattern(const Options& options) : stride_(bounded_positions(options.stride)) {}

  void append_visible(int32_t query, int32_t num_keys, std::vector<KeySegment>& segments) const override {
    append_segment(query % stride_, num_keys, stride_, segments);
  }
  int64_t group(int32_t query) const override { return query % stride_; }

 private:
  int64_t stride_;
};

inline std::vector<PatternExample> examples() {
  return {{.query = 4, .num_keys = 9, .keys = {1, 4, 7}, .options = "{stride: 3}"},
          {.query = 4, .num_keys = 5, .keys = {1, 4}, .options = "{stride: 3}"},
          {.query = 2, .num_keys = 4, .keys = {0, 1, 2, 3}, .options = "{stride: 1}"},
          {.query = 6, .num_keys = 12, .keys = {6}, .options = "{stride: 100}"},
          {.query = 5, .num_keys = 12, .keys = {1, 5, 9}}};
}

}  // namespace lacuna::patterns::atrous
