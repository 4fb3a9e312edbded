#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"

namespace lacuna {

/// Sentence borders of a ragged batch: B sentences end to end, T tokens in all; sentence b owns rows offsets[b] to
/// offsets[b + 1]. `ids`, the sentences' indices in the corpus, key dropout, so that it does not depend on batching.
class RaggedShape {
 public:
  /// offsets [B + 1] start at 0 and do not decrease; ids [B], or empty for 0 .. B-1. Throws ShapeError otherwise.
  explicit RaggedShape(std::vector<int32_t> offsets, std::vector<int64_t> ids = {}) : offsets_(std::move(offsets)), ids_(std::move(ids)) {
    if (offsets_.empty() || offsets_.front() != 0) throw ShapeError("ragged offsets must start at 0");
    for (size_t b = 1; b < offsets_.size(); ++b)
      if (offsets_[b] < offsets_[b - 1]) throw ShapeError("ragged offsets must not decrease");
    if (ids_.empty())
      for (size_t b = 0; b + 1 < offsets_.size(); ++b) ids_.push_back(static_cast<int64_t>(b));
    if (ids_.size() + 1 != offsets_.size()) throw ShapeError("a ragged shape needs one id per sentence");
  }

  static RaggedShape of_lengths(const std::vector<int32_t>& lengths, std::vector<int64_t> ids = {}) {
    std::vector<int32_t> offsets = {0};
    for (const int32_t length : lengths) offsets.push_back(offsets.back() + length);
    return RaggedShape(std::move(offsets), std::move(ids));
  }

  int64_t num_sentences() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t num_tokens() const { return offsets_.back(); }
  int32_t begin(int64_t sentence) const { return offsets_[static_cast<size_t>(sentence)]; }
  int32_t length(int64_t sentence) const { return offsets_[static_cast<size_t>(sentence) + 1] - offsets_[static_cast<size_t>(sentence)]; }
  int32_t max_length() const {
    int32_t longest = 0;
    for (int64_t b = 0; b < num_sentences(); ++b) longest = std::max(longest, length(b));
    return longest;
  }
  int64_t id(int64_t sentence) const { return ids_[static_cast<size_t>(sentence)]; }
  const std::vector<int32_t>& offsets() const { return offsets_; }
  const std::vector<int64_t>& ids() const { return ids_; }

 private:
  std::vector<int32_t> offsets_;
  std::vector<int64_t> ids_;
};

/// Returns the position of each token in its sentence: [T].
inline std::vector<int32_t> positions_of(const RaggedShape& shape) {
  std::vector<int32_t> positions;
  positions.reserve(static_cast<size_t>(shape.num_tokens()));
  for (int64_t b = 0; b < shape.num_sentences(); ++b)
    for (int32_t i = 0; i < shape.length(b); ++i) positions.push_back(i);
  return positions;
}

using RaggedShapePtr = std::shared_ptr<const RaggedShape>;

}  // namespace lacuna
