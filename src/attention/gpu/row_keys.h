#pragma once

#include "attention/gpu/block.h"
#include "attention/gpu/kernels.h"

namespace lacuna::cuda {

/// The keys that one query sees, as the plan has them: the first segment itself, and where it is.
struct RowSegments {
  KeySegment first;
  int32_t place, count;

  /// `entry`: the query's one in Plan::first_segment.
  LACUNA_HD RowSegments(const Plan& plan, const int32_t* entry) : first{}, place(entry[0]), count(entry[1] - entry[0]) {
    if (count > 0) first = plan.segments[place];
  }
};

/// The keys that one query of a tile sees. A warp uses it together.
template <class Block>
class RowKeys {
 public:
  /// `of_rows`: of the tile's rows.
  LACUNA_HD RowKeys(const Plan& plan, const RowSegments* of_rows, const Tile& tile, int r, const Block& block)
      : block_(block), begin_(tile.begin), width_(tile.width) {
    const RowSegments& row = of_rows[r];
    segments_ = row.count == 1 ? &row.first : plan.segments + row.place;
    num_segments_ = row.count;
    for (int s = 0; s < num_segments_; ++s) count_ += segments_[s].count;
    has_gaps_ = num_segments_ > 1 || (num_segments_ == 1 && segments_[0].stride != 1);
  }

  LACUNA_HD int count() const { return count_; }

  /// f(n, e) for the n-th of them, key e of the task, shared out among the lanes.
  template <class F>
  LACUNA_HD void for_each(F f) const {
    int before = 0;
    for (int s = 0; s < num_segments_; ++s) {
      const KeySegment segment = segments_[s];
      for (int n = block_.lane(); n < segment.count; n += Block::kLanes) f(before + n, segment.begin + n * segment.stride);
      before += segment.count;
    }
  }

  /// The elements of a row of the tile that belong to them: where they are if that is one run, else a copy in `list`.
  LACUNA_HD float* side_by_side(float* row, float* list) const {
    if (!has_gaps_) return row + run_begin();
    for_each([&](int n, int e) { list[n] = row[e - begin_]; });
    block_.sync_warp();
    return list;
  }

  /// Puts these elements back if they are a copy, and 0 elsewhere.
  LACUNA_HD void spread(const float* list, float* row) const {
    if (has_gaps_) {
      for (int e = block_.lane(); e < width_; e += Block::kLanes) row[e] = 0;
      block_.sync_warp();
      for_each([&](int n, int e) { row[e - begin_] = list[n]; });
    } else {
      for (int e = block_.lane(); e < width_; e += Block::kLanes)
        if (e < run_begin() || e >= run_begin() + count_) row[e] = 0;
    }
    block_.sync_warp();
  }

 private:
  LACUNA_HD int run_begin() const { return count_ > 0 ? segments_[0].begin - begin_ : 0; }

  const Block& block_;
  const KeySegment* segments_;
  int begin_, width_;
  int num_segments_, count_ = 0;
  bool has_gaps_;
};

}  // namespace lacuna::cuda
