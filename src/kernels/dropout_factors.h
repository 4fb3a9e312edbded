#pragma once

#include "base/random.h"
#include "kernels/row_kernels.h"

/// The rule of DropoutRows (kernels/row_kernels.h), for a few features at a time and on every device. Row loops apply it to whole rows.
///
/// Feature f of a row takes 16 bits of Philox block 16 (f / 128) + f % 16 at the row's position in its sentence: half-word f % 128 / 16.
namespace lacuna {

/// 0 or the scale for each element of rows [T, columns].
template <class T>
struct DropoutFactors {
  int64_t columns;
  DropoutRows dropout;
  T* factors;

  static constexpr int64_t kGroup = 128, kLanes = 16, kHalfWords = 8;

  /// Philox blocks of a row.
  LACUNA_RANDOM_HD int64_t blocks() const { return (columns + kGroup - 1) / kGroup * kLanes; }

  /// Writes those of `row` that `block` decides about: what one thread of a GPU does.
  LACUNA_RANDOM_HD void write(int64_t row, int64_t block) const {
    const int64_t sentence = sentence_of(row);
    const auto position = static_cast<uint64_t>(row - dropout.offsets[sentence]);
    const PhiloxBlock bits =
        philox(dropout.key, position << 32 | static_cast<uint64_t>(block), static_cast<uint64_t>(dropout.ids[sentence]));
    const int64_t first = block / kLanes * kGroup + block % kLanes;
    for (int64_t half = 0; half < kHalfWords && first + half * kLanes < columns; ++half) {
      const uint32_t word = bits.word[half / 2], decision = half % 2 == 0 ? word & 0xffff : word >> 16;
      factors[row * columns + first + half * kLanes] = decision >= dropout.threshold ? static_cast<T>(dropout.scale) : T(0);
    }
  }

 private:
  /// Of several that begin at a row, all but the last are empty.
  LACUNA_RANDOM_HD int64_t sentence_of(int64_t row) const {
    int64_t first = 0, end = dropout.sentences;
    while (end - first > 1) {
      const int64_t middle = (first + end) / 2;
      (dropout.offsets[middle] <= row ? first : end) = middle;
    }
    return first;
  }
};

/// On the GPU that is current: writes the factors of `rows` rows, whose sentences' borders and ids lie in its memory too. Null, or what
/// went wrong. There in builds with CUDA.
const char* write_dropout_factors_on_gpu(const DropoutFactors<float>& factors, int64_t rows, void* stream);

}  // namespace lacuna
