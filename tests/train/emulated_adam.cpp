#include "emulated_gpu.h"
#include "emulated_warps.h"
#include "train/adam_kernel.h"

namespace lacuna {

const char* emulated_adam_update(const AdamPointers<float>& pointers, const AdamStep& step, int64_t count, void* stream) {
  return start_adam<gpu::EmulatedLauncher>(pointers, step, count, stream);
}

}  // namespace lacuna
