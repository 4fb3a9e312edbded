#pragma once

#include <string>
#include <vector>

#include "bench/timing.h"

namespace lacuna {

/// Sizes of what kernels are timed on: at first those of the small model and its usual batch.
struct KernelSizes {
  int64_t tokens = 4096, d_model = 256, d_ff = 1024, vocab_size = 8000, parameters = 7'600'000;
};

/// A fused piece beside the same from plain ATen operations.
struct KernelCase {
  std::string name, shape, dtype;
  double operations = 0;  ///< of its matrix products; 0 = it is measured by
  double bytes = 0;       ///< that it must at least read and write
  Timed fused, plain;
};

/// Forward and backward of everything in kernels/ that training uses, its products alone, the update, and the packed products of
/// translating.
std::vector<KernelCase> kernel_cases(const KernelSizes& sizes);

}  // namespace lacuna
