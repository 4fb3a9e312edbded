#pragma once

#include <vector>

#include "kernels/cpu_target.h"

/// The instruction set that attention runs with on the CPU: the best that the machine has. Users cannot choose it.
/// src/kernels choose for their own products and rows (packed_product_choice.cpp, row_kernels_choice.cpp).
namespace lacuna {

/// Returns the targets that attention has kernels for and this machine runs, the best last: kAvx2, kAvx512, kAvx512Bf16
/// (bf16 products in vectors), kAmx (in tiles).
std::vector<CpuTarget> attention_targets();

/// Returns the target in use: the best that this machine has, unless a test asked for another.
CpuTarget attention_target();
/// For tests: uses this target from now on. Throws MachineError if this machine does not have it.
void use_attention_target(CpuTarget target);

}  // namespace lacuna
