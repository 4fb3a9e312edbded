#include <algorithm>
#include <set>

#include "analysis/links.h"

namespace lacuna {
namespace {

/// The growing set of links, and the words that have one.
struct Growing {
  std::set<Link> links;
  std::set<int32_t> src, tgt;

  void add(const Link& link) {
    links.insert(link);
    src.insert(link.first);
    tgt.insert(link.second);
  }
  bool has_src(const Link& link) const { return src.contains(link.first); }
  bool has_tgt(const Link& link) const { return tgt.contains(link.second); }
};

/// Orders links by target word, then source word, as the published algorithm does; its result depends on the order.
struct ByTarget {
  bool operator()(const Link& a, const Link& b) const { return std::pair(a.second, a.first) < std::pair(b.second, b.first); }
};
using LinksByTarget = std::set<Link, ByTarget>;

/// Adds neighbors of links in rounds, until a round adds nothing. Each link is visited once: neighbors that it does not add then have both
/// words linked already. So a round visits only links that were added behind its predecessor's position.
void grow(Growing& growing, const std::set<Link>& all) {
  constexpr Link kNeighbors[] = {{0, -1}, {-1, 0}, {0, 1}, {1, 0}, {-1, -1}, {1, -1}, {-1, 1}, {1, 1}};
  LinksByTarget waiting(growing.links.begin(), growing.links.end());
  for (auto turn = waiting.begin(); turn != waiting.end();) {
    const Link link = *turn;
    waiting.erase(turn);
    for (const auto& [by_src, by_tgt] : kNeighbors) {
      const Link next = {link.first + by_src, link.second + by_tgt};
      if (!all.contains(next) || (growing.has_src(next) && growing.has_tgt(next))) continue;
      growing.add(next);
      waiting.insert(next);
    }
    turn = waiting.upper_bound(link);
    if (turn == waiting.end()) turn = waiting.begin();  // the next round
  }
}

void add_final_and(Growing& growing, const std::set<Link>& direction) {
  for (const Link& link : LinksByTarget(direction.begin(), direction.end()))
    if (!growing.has_src(link) && !growing.has_tgt(link)) growing.add(link);
}

}  // namespace

Symmetrization symmetrization_of(const std::string& name) {
  if (name == "intersection") return Symmetrization::kIntersection;
  return name == "union" ? Symmetrization::kUnion : Symmetrization::kGrowDiagFinalAnd;
}

Links turned(const Links& links) {
  Links other;
  for (const auto& [src, tgt] : links) other.emplace_back(tgt, src);
  std::sort(other.begin(), other.end());
  return other;
}

Links symmetrize(const Links& forward, const Links& backward, Symmetrization kind) {
  const std::set<Link> first(forward.begin(), forward.end()), second(backward.begin(), backward.end());
  std::set<Link> all = first;
  all.insert(second.begin(), second.end());
  if (kind == Symmetrization::kUnion) return {all.begin(), all.end()};
  Growing growing;
  for (const Link& link : first)
    if (second.contains(link)) growing.add(link);
  if (kind == Symmetrization::kGrowDiagFinalAnd) {
    grow(growing, all);
    add_final_and(growing, first);
    add_final_and(growing, second);
  }
  return {growing.links.begin(), growing.links.end()};
}

}  // namespace lacuna
