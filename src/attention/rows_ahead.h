#pragma once

#include <cstdint>
#include <limits>

namespace lacuna::core {

/// What the task that comes next will read and write: pieces of tensors that lie far apart, which no processor foresees. Memory is asked
/// for them while the task before runs, a few at a time, as its products have a use for the time that this takes. Always inlined: compiled
/// for several instruction sets; and GCC leaves out calls of functions that only prefetch.
class RowsAhead {
 public:
  [[gnu::always_inline]] void clear() { count_ = next_ = 0; }
  /// `rows` of so many bytes, `stride` bytes from one to the next.
  [[gnu::always_inline]] void add(const void* first, int64_t rows, int64_t bytes, int64_t stride) {
    if (count_ < kMost && rows > 0) ranges_[count_++] = {static_cast<const char*>(first), rows, bytes, stride};
  }
  /// Bytes side by side, as rows of kPiece.
  [[gnu::always_inline]] void add(const void* first, int64_t bytes) { add(first, (bytes + kPiece - 1) / kPiece, kPiece, kPiece); }

  /// Asks for so many rows more, into the second cache: the first is in use.
  [[gnu::always_inline]] void fetch(int64_t rows) { fetch_into<2>(rows); }
  /// Asks for all that are left, into the first.
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
