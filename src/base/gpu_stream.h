#pragma once

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace lacuna {

/// What a GPU does in turn: where its kernels are to be started. Null on the CPU.
inline void* stream_of(at::Device device) {
  return device.is_cpu() ? nullptr : c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
}

/// start(stream) gives its work to this GPU (or, where that is emulated, does it). Throws MachineError with what it says that went wrong,
/// and OutOfMemoryError if that is memory; null = nothing.
template <class F>
void on_gpu(at::Device device, const F& start) {
  const c10::DeviceGuard guard(device);
  const char* const error = start(stream_of(device));
  if (error == nullptr) return;
  const std::string text =
      std::string("the GPU refused a kernel: ") + error + ". See by nvidia-smi what else it does, or compute on the CPU (device: cpu)";
  TORCH_CHECK_WITH(OutOfMemoryError, std::string_view(error) != "out of memory", text);
  throw MachineError(text);
}

}  // namespace lacuna
