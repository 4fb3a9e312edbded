#pragma once

#include "kernels/best_rows_block.h"
#include "kernels/best_tokens.h"
#include "kernels/gpu/started.h"

/// The kernel that finds the best tokens on a GPU, run on the CPU.
namespace lacuna {

enum class ThreadOrder { kUp, kDown };

/// A block whose threads run one after the other in every step.
template <ThreadOrder order>
struct SerialBlock {
  template <class F>
  void each(F f) const {
    for (int i = 0; i < gpu::kBestThreads; ++i) f(order == ThreadOrder::kUp ? i : gpu::kBestThreads - 1 - i);
  }
  int32_t add(int32_t* sum, int32_t value) const {
    const int32_t before = *sum;
    *sum += value;
    return before;
  }
};

template <ThreadOrder order = ThreadOrder::kUp>
const char* emulated_best_of_rows(const gpu::BestRows& args, int64_t rows, void* /*stream*/) {
  gpu::count_launch();
  for (int64_t row = 0; row < rows; ++row) {
    gpu::BestRowMemory memory = {};
    gpu::BestOfRow<SerialBlock<order>>{args, row, {}, memory}.run();
  }
  return nullptr;
}

/// During its lifetime, best tokens of rows on the CPU are found as on a GPU.
class EmulatedBestRows {
 public:
  explicit EmulatedBestRows(gpu::BestRowsFunction function = emulated_best_of_rows<>) { gpu::emulate_best_rows(function); }
  ~EmulatedBestRows() { gpu::emulate_best_rows(nullptr); }
  EmulatedBestRows(const EmulatedBestRows&) = delete;
  EmulatedBestRows& operator=(const EmulatedBestRows&) = delete;
};

}  // namespace lacuna
