#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

/// Tensors that lie in a file's memory map: their memory is the file's, and can be had again from there.
namespace lacuna {

using at::Tensor;

/// A view of `data`, in a private map that lives as long as `map` does. The tensor keeps it alive.
Tensor mapped_tensor(void* data, at::IntArrayRef sizes, at::ScalarType dtype, std::shared_ptr<const void> map);

/// Hands the memory of a tensor made so back to the system: what is read of it later comes from the file again. Pages that were written to
/// stay, as do other tensors.
void give_back_pages(const Tensor& tensor);

}  // namespace lacuna
