#pragma once

#include <ATen/core/Tensor.h>

#include "attention/gpu/kernels.h"

namespace lacuna::cuda {

/// Returns a tensor [T, H, d] as kernels see it. T: its numbers, as they know them.
template <class T>
Matrix<T> matrix_of(const at::Tensor& tensor) {
  return {static_cast<T*>(tensor.data_ptr()), tensor.stride(0), tensor.stride(1)};
}

/// True if 16 bytes of a row can be read at once.
inline bool is_aligned(const at::Tensor& rows) {
  const auto size = static_cast<int64_t>(rows.element_size());
  const auto whole = [](int64_t bytes) { return bytes % 16 == 0; };
  return whole(reinterpret_cast<intptr_t>(rows.data_ptr())) && whole(rows.stride(0) * size) && whole(rows.stride(1) * size) &&
         whole(rows.size(2) * size);
}

}  // namespace lacuna::cuda
