#pragma once

#include <cuda_runtime.h>

namespace lacuna {

/// Null, or what went wrong.
inline const char* message_of(cudaError_t error) {
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace lacuna
