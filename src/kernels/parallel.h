#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace lacuna {

/// Calls f(begin, end) for parts of [0, count), of at least `least` each (or all), on all threads. Each thread begins
/// with its own share, the same in every call of this size, so that its caches still hold what it wrote in the last
/// one. Then it steals parts of the others' shares: a thread that another program holds up does less, and as large
/// parts come first, none waits long at the end. In a parallel region, or where there is one part only, the calling
/// thread does all of it at once.
template <class F>
void for_parts(int64_t count, int64_t least, const F& f) {
  const int64_t threads = at::in_parallel_region() ? 1 : std::min<int64_t>(at::get_num_threads(), count / least);
  if (threads <= 1) {
    if (count > 0) f(0, count);
    return;
  }
  struct alignas(64) Share {  // a cache line each: other threads read it only when they have finished theirs
    std::atomic<int64_t> next;
    int64_t end;
  };
  std::array<Share, 64> shares;
  const int64_t used = std::min<int64_t>(threads, shares.size());
  for (int64_t i = 0; i < used; ++i) {
    shares[i].next = count * i / used;
    shares[i].end = count * (i + 1) / used;
  }
  at::parallel_for(0, threads, 1, [&](int64_t thread, int64_t /*last*/) {
    for (int64_t i = 0; i < used; ++i) {
      Share& share = shares[(thread + i) % used];
      for (int64_t begin = share.next; begin < share.end;) {
        const int64_t left = share.end - begin, end = left < 2 * least ? share.end : begin + std::max(least, left / 2);
        if (!share.next.compare_exchange_weak(begin, end)) continue;  // the exchange has updated `begin`
        f(begin, end);
        begin = share.next;
      }
    }
  });
}

/// Calls once, on this thread, those of LibTorch's functions of a tensor (exp, sqrt, ...) that Lacuna uses. Call it
/// before they run on several threads: where two make the first call of a function, in which MKL chooses its loops, one
/// may compute its share with an error of a thousand units (https://github.com/pytorch/pytorch/issues/188792).
void settle_vector_functions();

}  // namespace lacuna
