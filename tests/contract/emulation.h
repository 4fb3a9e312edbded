#pragma once

#include "attention/gpu/run.h"
#include "attention_contract.h"

namespace lacuna::contract {

/// Shared memory of a block; 163 KiB is that of the smallest GPU that Lacuna is compiled for.
template <int kKibibytes = 163>
int shared_bytes() {
  return kKibibytes * 1024;
}

/// Calls go through these kernels, on the CPU, while it lives.
class Emulation {
 public:
  explicit Emulation(const cuda::Engine& engine) : engine_(engine) {
    use(Engine::kAvx2);  // the tensors lie on the CPU
    cuda::emulate(&engine_);
  }
  ~Emulation() { cuda::emulate(nullptr); }
  Emulation(const Emulation&) = delete;
  Emulation& operator=(const Emulation&) = delete;

 private:
  const cuda::Engine engine_;
};

}  // namespace lacuna::contract
