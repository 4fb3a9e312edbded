#pragma once

#include "attention/cuda/kernels.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include <algorithm>
#include <barrier>
#include <memory>
#include <vector>
#endif

/// A thread's view of its block: who it is, and what it does together with the others. The kernels are written on it, once.
namespace lacuna::cuda {

#ifdef __CUDACC__

/// Four warps of a GPU.
struct Block {
  static constexpr int kLanes = 32, kWarps = cuda::kWarps;

  LACUNA_HD int lane() const { return thread() % kLanes; }
  LACUNA_HD int warp() const { return thread() / kLanes; }
#ifdef __CUDA_ARCH__
  LACUNA_HD void sync() const {
    __syncthreads();
  }
  LACUNA_HD void sync_warp() const {
    __syncwarp();
  }
  /// The same bits on every lane.
  LACUNA_HD float sum(float x) const {
    for (int distance = kLanes / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(kAll, x, distance);
    return x;
  }
  LACUNA_HD float max(float x) const {
    for (int distance = kLanes / 2; distance > 0; distance /= 2) x = fmaxf(x, __shfl_xor_sync(kAll, x, distance));
    return x;
  }
  /// How many lanes before this one hold true; `total`: how many do in all.
  LACUNA_HD int rank(bool holds, int& total) const {
    const unsigned lanes = __ballot_sync(kAll, holds);
    total = __popc(lanes);
    return __popc(lanes & ((1u << lane()) - 1));
  }

 private:
  static constexpr unsigned kAll = ~0u;
  LACUNA_HD int thread() const {
    return static_cast<int>(threadIdx.x);
  }
#else  // the host's half of nvcc reads the kernels and never runs them
  LACUNA_HD void sync() const {}
  LACUNA_HD void sync_warp() const {}
  LACUNA_HD float sum(float x) const {
    return x;
  }
  LACUNA_HD float max(float x) const {
    return x;
  }
  LACUNA_HD int rank(bool, int& total) const {
    return total = 0;
  }

 private:
  LACUNA_HD int thread() const {
    return 0;
  }
#endif
};

#else

/// The same kernels on the CPU, to test them without a GPU: a block of one thread, or of some threads of the machine that meet at barriers
/// wherever a GPU's would.
template <int kLanesOfWarp, int kWarpsOfBlock>
class EmulatedBlock {
 public:
  static constexpr int kLanes = kLanesOfWarp, kWarps = kWarpsOfBlock, kThreads = kLanes * kWarps;

  /// Where the threads of a block meet.
  struct Meeting {
    Meeting() {
      for (int i = 0; i < kWarps; ++i) warps.push_back(std::make_unique<std::barrier<> >(kLanes));
    }
    std::barrier<> all{kThreads};
    std::vector<std::unique_ptr<std::barrier<> > > warps;
    float values[kThreads] = {};
  };

  EmulatedBlock() = default;
  EmulatedBlock(Meeting& meeting, int thread) : meeting_(&meeting), thread_(thread) {}

  int lane() const { return thread_ % kLanes; }
  int warp() const { return thread_ / kLanes; }
  void sync() const {
    if constexpr (kThreads > 1) meeting_->all.arrive_and_wait();
  }
  void sync_warp() const {
    if constexpr (kLanes > 1) meeting_->warps[static_cast<size_t>(warp())]->arrive_and_wait();
  }
  float sum(float x) const {
    return gathered(x, [](float a, float b) { return a + b; });
  }
  float max(float x) const {
    return gathered(x, [](float a, float b) { return std::max(a, b); });
  }
  int rank(bool holds, int& total) const {
    if constexpr (kLanes == 1) {
      total = holds;
      return 0;
    }
    share(holds ? 1.f : 0.f);
    int before = 0;
    total = 0;
    for (int i = 0; i < kLanes; ++i) {
      if (i == lane()) before = total;
      total += static_cast<int>(values()[i]);
    }
    sync_warp();
    return before;
  }

 private:
  float* values() const { return meeting_->values + warp() * kLanes; }
  void share(float x) const {
    values()[lane()] = x;
    sync_warp();
  }
  template <class F>
  float gathered(float x, F join) const {
    if constexpr (kLanes == 1) return x;
    share(x);
    float result = values()[0];
    for (int i = 1; i < kLanes; ++i) result = join(result, values()[i]);
    sync_warp();
    return result;
  }

  Meeting* meeting_ = nullptr;
  int thread_ = 0;
};

#endif

}  // namespace lacuna::cuda
