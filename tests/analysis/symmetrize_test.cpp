#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "analysis/links.h"
#include "base/random.h"

namespace lacuna {
namespace {

/// Grow-diag-final-and as it is published: rounds over the whole union, by target word and then source word, until one adds nothing.
Links grown_in_whole_rounds(const Links& forward, const Links& backward) {
  const std::set<Link> first(forward.begin(), forward.end()), second(backward.begin(), backward.end());
  std::set<Link> all = first, links;
  all.insert(second.begin(), second.end());
  std::set<int32_t> src, tgt;
  const auto add = [&](const Link& link) {
    links.insert(link);
    src.insert(link.first);
    tgt.insert(link.second);
  };
  const auto by_target = [](const std::set<Link>& some) {
    Links ordered(some.begin(), some.end());
    std::stable_sort(ordered.begin(), ordered.end(), [](const Link& a, const Link& b) { return a.second < b.second; });
    return ordered;
  };
  for (const Link& link : first)
    if (second.count(link) > 0) add(link);
  for (bool has_grown = true; has_grown;) {
    has_grown = false;
    for (const Link& link : by_target(all)) {
      if (links.count(link) == 0) continue;
      for (const auto& [by_src, by_tgt] : Links{{0, -1}, {-1, 0}, {0, 1}, {1, 0}, {-1, -1}, {1, -1}, {-1, 1}, {1, 1}}) {
        const Link next = {link.first + by_src, link.second + by_tgt};
        if (all.count(next) == 0 || (src.count(next.first) > 0 && tgt.count(next.second) > 0)) continue;
        add(next);
        has_grown = true;
      }
    }
  }
  for (const std::set<Link>* direction : {&first, &second})
    for (const Link& link : by_target(*direction))
      if (src.count(link.first) == 0 && tgt.count(link.second) == 0) add(link);
  return {links.begin(), links.end()};
}

TEST(Symmetrise, GrowsAsWholeRoundsDo) {
  RandomStream random(5);
  for (int line = 0; line < 500; ++line) {
    const uint64_t words = 2 + random.next_below(10), count = 1 + random.next_below(2 * words);
    Links forward, backward;
    for (uint64_t i = 0; i < count; ++i) {
      const auto draw = [&] {
        return Link(static_cast<int32_t>(random.next_below(words)), static_cast<int32_t>(random.next_below(words)));
      };
      forward.push_back(draw());
      backward.push_back(i % 3 == 0 ? forward.back() : draw());
    }
    EXPECT_EQ(symmetrize(forward, backward, Symmetrization::kGrowDiagFinalAnd), grown_in_whole_rounds(forward, backward)) << line;
  }
}

/// Each round adds one link of a diagonal that leads back to the first words: as many rounds as links.
TEST(Symmetrise, OfALongLineIsSoonDone) {
  constexpr int32_t kWords = 50000;
  Links diagonal;
  for (int32_t word = 0; word < kWords; ++word) diagonal.emplace_back(word, word);
  EXPECT_EQ(symmetrize(diagonal, {diagonal.back()}, Symmetrization::kGrowDiagFinalAnd), diagonal);
}

}  // namespace
}  // namespace lacuna
