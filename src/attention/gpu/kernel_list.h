#pragma once

#include <span>

#include "attention/gpu/kernels.h"

namespace lacuna::cuda {

/// The kernels of every type in the list of CMakeLists.txt, compiled for the GPU.
std::span<const TypeKernels> all_gpu_kernels();
std::span<const TypeKernels> all_emulated_kernels();  ///< the same code for the CPU, one thread a block, for tests
std::span<const TypeKernels> all_threaded_kernels();  ///< the same with two warps of four threads a block

/// Returns the bytes of shared memory that a block may use on the current GPU. Throws MachineError with CUDA's own words if that cannot be
/// told.
int gpu_shared_bytes();

}  // namespace lacuna::cuda
