#pragma once

#include <algorithm>
#include <string>

#include "attention/patterns/pattern.h"
#include "config/config_node.h"
#include "config/describe.h"

/// Fixed self-attention: the query's own block of the sentence, and the last few positions of every block, which sum
/// the others up.
///
///   query i sees key j      if floor(i / block) = floor(j / block)  or  j mod block >= block - summary
///
/// Child et al. 2019, arXiv:1904.10509, section 4.3, both halves in one query. n (block + summary n / block) products
/// in place of n².
namespace lacuna::patterns::fixed {

inline constexpr bool kNeedsDistance = true;

struct Options {
  int64_t block = 8;
  int64_t summary = 1;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("block", self.block, at_least(1), "positions of a block; a query sees all of its own");
    visit("summary", self.summary, at_least(0), "last positions of each block that every query sees; 0 = none, each block on its own");
  }

  void check(const ConfigNode& node) const {
    if (summary > block)
      node.find("summary")->fail("expected at most block, " + std::to_string(block) + ": a block has no more positions to see");
  }
};

class Pattern : public AttentionPattern {
 public:
  explicit Pattern(const Options& options) : block_(bounded_positions(options.block)), summary_(bounded_positions(options.summary)) {}

  void append_visible(int32_t query, int32_t num_keys, std::vector<KeySegment>& segments) const override {
    const int64_t own = query / block_ * block_, next = own + block_;
    for (int64_t j = block_ - summary_; j < std::min<int64_t>(block_, own); ++j)
      append_segment(j, std::min<int64_t>(num_keys, own), block_, segments);
    append_segment(own, std::min<int64_t>(num_keys, next), 1, segments);
    for (int64_t j = next + block_ - summary_; j < std::min<int64_t>(next + block_, num_keys); ++j)
      append_segment(j, num_keys, block_, segments);
  }
  int64_t group(int32_t query) const override { return query / block_; }

 private:
  int64_t block_, summary_;
};

inline std::vector<PatternExample> examples() {
  return {{.query = 5, .num_keys = 14, .keys = {3, 4, 5, 6, 7, 11}, .options = "{block: 4}"},
          {.query = 5, .num_keys = 6, .keys = {3, 4, 5}, .options = "{block: 4}"},
          {.query = 0, .num_keys = 10, .keys = {0, 1, 2, 4, 5, 7, 8}, .options = "{block: 3, summary: 2}"},
          {.query = 7, .num_keys = 8, .keys = {1, 2, 4, 5, 6, 7}, .options = "{block: 3, summary: 2}"},
          {.query = 5, .num_keys = 14, .keys = {4, 5, 6, 7}, .options = "{block: 4, summary: 0}"},
          {.query = 1, .num_keys = 5, .keys = {0, 1, 2, 3, 4}, .options = "{block: 2, summary: 2}"},
          {.query = 17, .num_keys = 19, .keys = {7, 15, 16, 17, 18}}};
}

}  // namespace lacuna::patterns::fixed
