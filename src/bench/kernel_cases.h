#pragma once

#include <string>
#include <vector>

#include "speed/timing.h"

namespace lacuna {

/// Sizes of the inputs of timed kernels; the defaults are those of the small model.
struct KernelSizes {
  int64_t tokens = 4096, d_model = 256, d_ff = 1024, vocab_size = 8000, parameters = 7'600'000;
};

/// A fused kernel and the same computation in plain ATen operations.
struct KernelCase {
  std::string name, shape, dtype;
  double operations = 0;  ///< floating-point operations of its matrix products; 0 = measured by bytes
  double bytes = 0;       ///< bytes that it must at least read and write
  Timed fused, plain;
};

/// Returns the cases: forward and backward of all kernels that training uses, their products alone, the update, and the packed products of
/// translating.
std::vector<KernelCase> kernel_cases(const KernelSizes& sizes);

}  // namespace lacuna
