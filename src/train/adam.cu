#include "base/cuda_message.h"
#include "train/adam_step.h"

namespace lacuna {
namespace {

constexpr int kThreads = 256;

template <bool kAverages>
__global__ void __launch_bounds__(kThreads)
    update_all(const AdamPointers<float> pointers, const AdamNumbers<float> numbers, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + static_cast<int64_t>(threadIdx.x);
  if (i < count) update_element<float, kAverages>(pointers, numbers, i);
}

}  // namespace

const char* adam_update_on_gpu(const AdamPointers<float>& pointers, const AdamStep& step, int64_t count, void* stream) {
  if (count == 0) return nullptr;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  const auto kernel = pointers.average != nullptr ? update_all<true> : update_all<false>;
  kernel<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(pointers, AdamNumbers<float>(step), count);
  return message_of(cudaGetLastError());
}

}  // namespace lacuna
