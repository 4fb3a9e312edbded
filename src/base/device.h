#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

/// LibTorch's devices, the CPU or a GPU: streams, copies, memory.
namespace lacuna {

/// Returns the current stream of a GPU, on which its kernels are to be launched; null for the CPU.
inline void* stream_of(at::Device device) {
  return device.is_cpu() ? nullptr : c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
}

/// Calls start(stream), which launches kernels on the device's current stream and returns null or the error's name. Throws
/// OutOfMemoryError if that is "out of memory", else MachineError.
template <class F>
void on_gpu(at::Device device, const F& start) {
  const c10::DeviceGuard guard(device);
  const char* const error = start(stream_of(device));
  if (error == nullptr) return;
  const std::string text =
      std::string("the GPU refused a kernel: ") + error + ". See nvidia-smi for what else it runs, or compute on the CPU (device: cpu)";
  TORCH_CHECK_WITH(OutOfMemoryError, std::string_view(error) != "out of memory", text);
  throw MachineError(text);
}

/// What tensor_of() and on_host() have copied in this process. Tensors on the CPU count as if they were on a GPU, for tests that emulate
/// one.
struct DeviceCopies {
  std::atomic<int64_t> to_device = 0, to_device_bytes = 0, to_host = 0, to_host_bytes = 0;
};
inline DeviceCopies device_copies;

/// Returns the list as a tensor [n] on `device`. The copy to a GPU is asynchronous and ordered with later work on the current stream. It is
/// made from a block of pinned memory of LibTorch's, which keeps such blocks, and gives one out again when the copy from it is done.
template <class X>
at::Tensor tensor_of(const std::vector<X>& list, at::Device device) {
  constexpr at::ScalarType type = c10::CppTypeToScalarType<X>::value;
  device_copies.to_device.fetch_add(1, std::memory_order_relaxed);
  device_copies.to_device_bytes.fetch_add(static_cast<int64_t>(list.size() * sizeof(X)), std::memory_order_relaxed);
  const at::Tensor here = at::empty({static_cast<int64_t>(list.size())}, at::TensorOptions(type).pinned_memory(device.is_cuda()));
  std::copy(list.begin(), list.end(), here.mutable_data_ptr<X>());
  return device.is_cpu() ? here : here.to(device, type, /*non_blocking=*/true);
}

/// Returns the tensor in this machine's memory. Waits for the device.
inline at::Tensor on_host(const at::Tensor& tensor) {
  device_copies.to_host.fetch_add(1, std::memory_order_relaxed);
  device_copies.to_host_bytes.fetch_add(static_cast<int64_t>(tensor.nbytes()), std::memory_order_relaxed);
  return tensor.cpu();
}

/// Returns the bytes of a GPU's memory that nobody uses.
inline int64_t free_bytes(at::Device device) {
  const c10::DeviceIndex index = device.has_index() ? device.index() : c10::DeviceIndex{0};
  return static_cast<int64_t>(c10::getDeviceAllocator(device.type())->getMemoryInfo(index).first);
}

/// The peak memory in MiB: of this process for the CPU, of the allocated tensors for a GPU.
inline double peak_mebibytes(c10::Device device) {
  if (device.is_cpu()) {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / (1 << 10);
  }
  const auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const c10::DeviceIndex index = device.has_index() ? device.index() : c10::DeviceIndex{0};
  return static_cast<double>(c10::getDeviceAllocator(device.type())->getDeviceStats(index).allocated_bytes[all].peak) / (1 << 20);
}

/// True if the error says that memory ran out. LibTorch reports that by several types and, on the CPU and from some GPU libraries, by its
/// message alone.
inline bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  const auto* const of_torch = dynamic_cast<const c10::Error*>(&error);
  if (of_torch == nullptr) return false;
  constexpr std::string_view kWords[] = {"can't allocate memory", "not enough memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED"};
  const std::string_view text = of_torch->what_without_backtrace();  // what() makes a backtrace, which takes memory
  return std::ranges::any_of(kWords, [text](std::string_view words) { return text.find(words) != text.npos; });
}

}  // namespace lacuna
