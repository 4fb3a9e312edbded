#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lacuna {

/// The list as a tensor [n] on `device`. The copy to a GPU is asynchronous and ordered with later work on the current stream.
template <class X>
at::Tensor tensor_of(const std::vector<X>& list, at::Device device) {
  constexpr at::ScalarType type = c10::CppTypeToScalarType<X>::value;
  const at::Tensor here = at::empty({static_cast<int64_t>(list.size())}, at::TensorOptions(type).pinned_memory(device.is_cuda()));
  std::copy(list.begin(), list.end(), here.mutable_data_ptr<X>());
  return device.is_cpu() ? here : here.to(device, type, /*non_blocking=*/true);
}

}  // namespace lacuna
