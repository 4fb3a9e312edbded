#pragma once

#include "attention/gpu/kernels.h"

namespace lacuna::cuda {

/// The segments of keys that one query sees: a copy of the first, and the place of all in the schedule.
struct RowSegments {
  KeySegment first;
  int32_t place, count;

  /// `entry` is the query's entry in BlockSchedule::first_segment.
  LACUNA_HD RowSegments(const BlockSchedule& schedule, const int32_t* entry) : first{}, place(entry[0]), count(entry[1] - entry[0]) {
    if (count > 0) first = schedule.segments[place];
  }
};

/// The keys that one query of a tile sees. All lanes of a warp call its functions together.
template <class Block>
class RowKeys {
 public:
  /// `of_rows` holds the segments of the tile's rows; r is the query's row.
  LACUNA_HD RowKeys(const BlockSchedule& schedule, const RowSegments* of_rows, const QueryTile& tile, int r, const Block& block)
      : block_(block), begin_(tile.begin), width_(tile.width) {
    const RowSegments& row = of_rows[r];
    segments_ = row.count == 1 ? &row.first : schedule.segments + row.place;
    num_segments_ = row.count;
    for (int s = 0; s < num_segments_; ++s) count_ += segments_[s].count;
    has_gaps_ = num_segments_ > 1 || (num_segments_ == 1 && segments_[0].stride != 1);
  }

  LACUNA_HD int count() const { return count_; }

  /// Calls f(n, e) for the n-th visible key, key e of the task; lanes share the keys.
  template <class F>
  LACUNA_HD void for_each(F f) const {
    int before = 0;
    for (int s = 0; s < num_segments_; ++s) {
      const KeySegment segment = segments_[s];
      for (int n = block_.lane(); n < segment.count; n += Block::kLanes) f(before + n, segment.begin + n * segment.stride);
      before += segment.count;
    }
  }

  /// Returns the elements of a row of the tile at visible keys: in place if they are contiguous, else gathered into `list`.
  LACUNA_HD float* side_by_side(float* row, float* list) const {
    if (!has_gaps_) return row + run_begin();
    for_each([&](int n, int e) { list[n] = row[e - begin_]; });
    block_.sync_warp();
    return list;
  }

  /// Scatters gathered elements back into the row, and writes 0 at other keys.
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
