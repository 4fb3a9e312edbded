#include "kernels/gpu/launch.h"
#include "train/adam_kernel.h"

namespace lacuna {

const char* adam_update_on_gpu(const AdamPointers<float>& pointers, const AdamStep& step, int64_t count, void* stream) {
  return start_adam<gpu::GpuLauncher>(pointers, step, count, stream);
}

}  // namespace lacuna
