#pragma once

#include <atomic>
#include <cstdint>

namespace lacuna::gpu {

/// The number of our kernels that this process has started, on a GPU or emulated on the CPU.
inline std::atomic<int64_t> started_kernels = 0;

inline void count_launch() {
  started_kernels.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace lacuna::gpu
