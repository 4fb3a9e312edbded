#pragma once

#include "base/macros.h"
#include "base/random.h"
#include "kernels/row_kernels.h"

/// The rule of DropoutRows (kernels/row_kernels.h), for a few features at a time and on every device. Row loops apply
/// it to whole rows.
///
/// Feature f of a row takes 16 bits of Philox block 16 (f / 128) + f % 16 at the row's position in its sentence:
/// half-word f % 128 / 16.
namespace lacuna {

/// The features of a row, by the blocks that decide about them.
struct FeatureBlocks {
  int64_t columns;

  static constexpr int64_t kGroup = 128, kLanes = 16, kHalfWords = 8;

  LACUNA_HOST_DEVICE int64_t count() const { return (columns + kGroup - 1) / kGroup * kLanes; }

  /// Calls f(feature, half-word) for each feature of a block.
  template <class F>
  LACUNA_HOST_DEVICE void for_each(int64_t block, F f) const {
    const int64_t first = block / kLanes * kGroup + block % kLanes;
    for (int64_t half = 0; half < kHalfWords && first + half * kLanes < columns; ++half) f(first + half * kLanes, half);
  }
};

/// The dropout of one row.
class DroppedRow {
 public:
  LACUNA_HOST_DEVICE DroppedRow(const DropoutRows& dropout, int64_t row)
      : key_(dropout.key), threshold_(dropout.threshold), scale_(dropout.scale) {
    if (threshold_ == 0) return;
    const int64_t sentence = sentence_of(dropout, row);
    position_ = static_cast<uint64_t>(row - dropout.offsets[sentence]);
    id_ = static_cast<uint64_t>(dropout.ids[sentence]);
  }

  /// Returns the bits that decide about a block's features.
  LACUNA_HOST_DEVICE PhiloxBlock draw(int64_t block) const {
    return threshold_ == 0 ? PhiloxBlock{} : philox(key_, position_ << 32 | static_cast<uint64_t>(block), id_);
  }
  template <class T>
  LACUNA_HOST_DEVICE T factor(const PhiloxBlock& bits, int64_t half) const {
    const uint32_t word = bits.word[half / 2], decision = half % 2 == 0 ? word & 0xffff : word >> 16;
    return decision >= threshold_ ? static_cast<T>(scale_) : T(0);
  }
  /// Returns the factor of one feature; to ask for many, draw their blocks.
  template <class T>
  LACUNA_HOST_DEVICE T factor_of(int64_t feature) const {
    using Blocks = FeatureBlocks;
    const int64_t in_group = feature % Blocks::kGroup;
    return factor<T>(draw(feature / Blocks::kGroup * Blocks::kLanes + in_group % Blocks::kLanes), in_group / Blocks::kLanes);
  }

 private:
  /// Returns the sentence of a row. Of several sentences that begin at one row, all but the last are empty.
  LACUNA_HOST_DEVICE static int64_t sentence_of(const DropoutRows& dropout, int64_t row) {
    int64_t first = 0, end = dropout.sentences;
    while (end - first > 1) {
      const int64_t middle = (first + end) / 2;
      (dropout.offsets[middle] <= row ? first : end) = middle;
    }
    return first;
  }

  uint64_t key_, position_ = 0, id_ = 0;
  uint32_t threshold_;
  double scale_;
};

}  // namespace lacuna
