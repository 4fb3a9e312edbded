#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace lacuna {

/// Keys at positions begin, begin + stride, ..., `count` of them.
struct KeySegment {
  int32_t begin, count, stride;
};

/// A pattern decides which keys a query may see. Each has a file in patterns/, listed in attention/CMakeLists.txt, where
/// kNeedsDistance says that query and key must stand in the same sentence: without meaning on cross attention.
class AttentionPattern {
 public:
  virtual ~AttentionPattern() = default;
  /// Appends the keys that the query at position `query` sees among the first `num_keys`: disjoint segments with count
  /// > 0. (A causal call passes num_keys = query + 1.) A smaller num_keys leaves keys out and changes nothing else.
  virtual void append_visible(int32_t query, int32_t num_keys, std::vector<KeySegment>& segments) const = 0;
  /// Returns true if every query sees all of the first num_keys.
  virtual bool shows_every_key() const { return false; }
  /// Returns the group of a query. Queries of one group see the same keys, as far as num_keys lets each, so that the
  /// core can work on them together. By default each query is its own group.
  virtual int64_t group(int32_t query) const { return query; }
};

/// The keys that a query sees, found by hand: every pattern's file holds some.
struct PatternExample {
  int32_t query = 0, num_keys = 0;
  std::vector<int32_t> keys = {};
  std::string options = {};  ///< as in YAML's flow style, "{window: 2}"; empty = the defaults
};

/// Returns an option that counts positions, at most the largest position: more means the same, and sums of a few fit.
inline int64_t bounded_positions(int64_t option) {
  return std::min<int64_t>(option, std::numeric_limits<int32_t>::max());
}

/// Appends the positions begin, begin + stride, ... below `end`, if there are any.
inline void append_segment(int64_t begin, int64_t end, int64_t stride, std::vector<KeySegment>& segments) {
  if (begin >= end) return;
  const int64_t count = (end - begin + stride - 1) / stride;
  segments.push_back({static_cast<int32_t>(begin), static_cast<int32_t>(count), count > 1 ? static_cast<int32_t>(stride) : 1});
}

/// Returns true if the segments of a query are one run of neighboring keys, or none.
inline bool is_one_run(std::span<const KeySegment> segments) {
  return segments.empty() || (segments.size() == 1 && segments[0].stride == 1);
}

/// Appends the positions of the segments' keys.
inline void append_positions(std::span<const KeySegment> segments, std::vector<int32_t>& positions) {
  for (const KeySegment& segment : segments)
    for (int32_t j = 0; j < segment.count; ++j) positions.push_back(segment.begin + j * segment.stride);
}

}  // namespace lacuna
