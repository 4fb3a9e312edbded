#include "kernels/gpu/kernels.h"

namespace lacuna::gpu {
namespace {

const Kernels* emulated_kernels = nullptr;

}  // namespace

void emulate(const Kernels* kernels) {
  emulated_kernels = kernels;
}

const Kernels* kernels_for([[maybe_unused]] bool is_on_gpu) {
#if LACUNA_CUDA
  if (is_on_gpu) return &compiled_kernels();
#endif
  return is_on_gpu ? nullptr : emulated_kernels;
}

}  // namespace lacuna::gpu
