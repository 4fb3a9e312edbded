#pragma once

#include <cstdint>
#include <vector>

namespace lacuna {

/// Keys at positions begin, begin + stride, ..., `count` of them.
struct KeySegment {
  int32_t begin, count, stride;
};

/// Which keys a query may see. One file each in patterns/; listed in CMakeLists.txt.
class AttentionPattern {
 public:
  virtual ~AttentionPattern() = default;
  /// Appends the keys that the query at position `query` sees among the first `num_keys`: disjoint segments with count > 0. (A causal call
  /// passes num_keys = query + 1.)
  virtual void append_visible(int32_t query, int32_t num_keys, std::vector<KeySegment>& segments) const = 0;
};

}  // namespace lacuna
