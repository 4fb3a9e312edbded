#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

/// Tensors in a memory-mapped file: the system can free their pages and read them again from the file.
namespace lacuna {

using at::Tensor;

/// Returns a tensor over `data`, which lies in a private mapping that lives as long as `map`. The tensor keeps `map`
/// alive.
Tensor mapped_tensor(void* data, at::IntArrayRef sizes, at::ScalarType dtype, std::shared_ptr<const void> map);

/// Frees the pages of a mapped_tensor: later reads load them from the file again. Pages that were written to stay in
/// memory. Does nothing for any other tensor.
void give_back_pages(const Tensor& tensor);

}  // namespace lacuna
