// Blocks multiplied in vectors of 16 words. Compiled for AVX-512, where factors are float, and for AVX512-BF16, where they are of bf16.

#include "kernels/block_loops.h"

namespace lacuna::LACUNA_TARGET {
namespace {

template <class Factor>
class Vectors {
 public:
  void multiply(const uint32_t* rows, const uint32_t* columns, int64_t steps, FirstSums start, float* c, int64_t c_row,
                int64_t count) const {
    const RowsByColumns factors = {.rows = rows,
                                   .row = kWordsInStep,
                                   .left = columns,
                                   .right = columns + kTileWords,
                                   .column = kTileRows,
                                   .words = kWordsInStep,
                                   .steps = steps,
                                   .next_rows = kStepWords,
                                   .next_columns = kStepWords};
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
