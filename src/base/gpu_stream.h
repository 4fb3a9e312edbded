#pragma once

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <string>

#include "base/error.h"

namespace lacuna {

/// What a GPU does in turn: where its kernels are to be started. Null on the CPU.
inline void* stream_of(at::Device device) {
  return device.is_cpu() ? nullptr : c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
}

/// start(stream) gives its work to this GPU (or, where that is emulated, does it). Throws MachineError with what it says that went wrong;
/// null = nothing.
template <class F>
void on_gpu(at::Device device, const F& start) {
  const c10::DeviceGuard guard(device);
  if (const char* const error = start(stream_of(device)))
    throw MachineError(std::string("the GPU refused a kernel: ") + error +
                       ". See by nvidia-smi what else it does, or compute on the CPU (device: cpu)");
}

}  // namespace lacuna
