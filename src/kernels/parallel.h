#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace lacuna {

/// Calls f(begin, end) for parts of [0, count) of at least `least` each, on all threads. A thread takes the next part when it is done with
/// one, large parts first: where one is held up, by another program say, the others do more, and nobody waits long at the end. In a
/// parallel region, or where there is one part only, the calling thread does all of it at once.
template <class F>
void for_parts(int64_t count, int64_t least, const F& f) {
  const int64_t threads = at::in_parallel_region() ? 1 : std::min<int64_t>(at::get_num_threads(), (count + least - 1) / least);
  if (threads <= 1) {
    if (count > 0) f(0, count);
    return;
  }
  std::atomic<int64_t> next = 0;
  at::parallel_for(0, threads, 1, [&](int64_t /*first*/, int64_t /*last*/) {
    for (int64_t begin = next; begin < count;) {
      const int64_t end = std::min(count, begin + std::max(least, (count - begin) / (2 * threads)));
      if (!next.compare_exchange_weak(begin, end)) continue;  // `begin` is where the others are
      f(begin, end);
      begin = next;
    }
  });
}

}  // namespace lacuna
