#pragma once

#include "kernels/gpu/kernels.h"

namespace lacuna::gpu {

/// The kernels of kernels/gpu/, compiled for the CPU, where the threads of each block take turns.
const Kernels& emulated_kernels();

/// While it lives, tensors on the CPU go the way of a GPU's.
class Emulation {
 public:
  Emulation() { emulate(&emulated_kernels()); }
  ~Emulation() { emulate(nullptr); }
  Emulation(const Emulation&) = delete;
  Emulation& operator=(const Emulation&) = delete;
};

}  // namespace lacuna::gpu
