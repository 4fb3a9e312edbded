#pragma once

#include <cstdint>
#include <limits>

namespace lacuna::core {

/// Prefetches what the next task will read and write: pieces of tensors that lie too far apart for the processor's own prefetcher. This is
/// done a few rows at a time between the products of the current task, which hide the latency. Always inlined: compiled for several
/// instruction sets; and GCC leaves out calls of functions that only prefetch.
class RowsAhead {
 public:
  [[gnu::always_inline]] void clear() { count_ = next_ = 0; }
  /// `rows` rows of `bytes` bytes each, `stride` bytes from one to the next.
  [[gnu::always_inline]] void add(const void* first, int64_t rows, int64_t bytes, int64_t stride) {
    if (count_ < kMost && rows > 0) ranges_[count_++] = {static_cast<const char*>(first), rows, bytes, stride};
  }
  /// `bytes` contiguous bytes, as rows of kPiece.
  [[gnu::always_inline]] void add(const void* first, int64_t bytes) { add(first, (bytes + kPiece - 1) / kPiece, kPiece, kPiece); }

  /// Prefetches the next `rows` rows into the L2 cache: the L1 cache is in use.
  [[gnu::always_inline]] void fetch(int64_t rows) { fetch_into<2>(rows); }
  /// Prefetches all rows that are left into the L1 cache.
  [[gnu::always_inline]] void fetch_all() { fetch_into<3>(std::numeric_limits<int64_t>::max()); }

 private:
  static constexpr int kMost = 8;  // ranges; what is beyond is left out
  static constexpr int64_t kLine = 64, kPiece = 2 * kLine;
  struct Range {
    const char* next;
    int64_t rows, bytes, stride;
  };

  template <int kLocality>
  [[gnu::always_inline]] void fetch_into(int64_t rows) {
    while (rows > 0 && next_ < count_) {
      Range& range = ranges_[next_];
      const int64_t now = range.rows < rows ? range.rows : rows;
      for (int64_t r = 0; r < now; ++r, range.next += range.stride)
        for (int64_t b = 0; b < range.bytes; b += kLine) __builtin_prefetch(range.next + b, 0, kLocality);
      rows -= now;
      range.rows -= now;
      if (range.rows == 0) ++next_;
    }
  }

  Range ranges_[kMost];
  int count_ = 0, next_ = 0;
};

}  // namespace lacuna::core
