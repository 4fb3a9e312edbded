// Blocks multiplied in vectors. Compiled for AVX2 and AVX-512, where factors are float, and for AVX512-BF16, where they
// are of bf16.

#include "kernels/block_loops.h"

namespace lacuna::LACUNA_TARGET {
namespace {

/// A row's words lie in one line through all steps, and so do those of 16 columns.
template <class Factor>
class Vectors {
 public:
  static constexpr int64_t kBlocksTogether = 2;
  static TilePlaces places_of_rows(int64_t steps) {
    return {.step = kWordsInStep, .second = kTileRows * steps * kWordsInStep, .line = steps * kWordsInStep};
  }
  static TilePlaces places_of_panel(int64_t steps) { return {.step = kTileWords, .second = steps * kTileWords, .line = kTileRows}; }

  void multiply(const uint32_t* rows, const uint32_t* columns, int64_t steps, FirstSums start, float* c, int64_t c_row,
                int64_t count) const {
    const RowsByColumns factors = {.rows = rows,
                                   .row = steps * kWordsInStep,
                                   .left = columns,
                                   .right = columns + steps * kTileWords,
                                   .column = kTileRows,
                                   .words = steps * kWordsInStep};
    sum_products(count, factors, start, c, c_row);
  }
};

}  // namespace

#ifdef __AVX512BF16__
constinit const BlockKernel<Bf16Factor> kBf16Blocks = kernel_of<Vectors, Bf16Factor>();
#else
constinit const BlockKernel<FloatFactor> kFloatBlocks = kernel_of<Vectors, FloatFactor>();
#endif

}  // namespace lacuna::LACUNA_TARGET
