#pragma once

#include <span>

#include "attention/gpu/kernels.h"

namespace lacuna::cuda {

/// Of every type in the list of CMakeLists.txt. Each kind is there where it was built.
std::span<const Kernels> all_gpu_kernels();
std::span<const Kernels> all_emulated_kernels();  ///< the same code for the CPU, one thread a block: in tests
std::span<const Kernels> all_threaded_kernels();  ///< likewise with two warps of four threads

/// Bytes of shared memory that a block may use on the current GPU. Throws MachineError with CUDA's own words if that cannot be told.
int gpu_shared_bytes();

}  // namespace lacuna::cuda
