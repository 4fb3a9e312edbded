#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <type_traits>

#include "attention/core_thread.h"
#include "kernels/row_kernels.h"

namespace lacuna {

/// Where a row's head begins; null in a tensor without rows, which has no memory.
template <class Number>
Number* row_of(const Tensor& rows, int64_t row, int64_t head) {
  Number* const first = rows.data_ptr<Number>();
  return first != nullptr ? first + row * rows.stride(0) + head * rows.stride(1) : nullptr;
}
/// The same of numbers of bf16, as their bits.
inline uint16_t* bits_of_row(const Tensor& rows, int64_t row, int64_t head) {
  at::BFloat16* const first = row_of<at::BFloat16>(rows, row, head);
  return first != nullptr ? &first->x : nullptr;
}

/// Rows of a tensor as a task has them: in place or, of other numbers, in a copy with all of them side by side.
template <class S, class Stored>
class TaskRows {
 public:
  explicit TaskRows(int64_t d_head) : d_head_(d_head) {}

  int64_t stride(const Tensor& rows) const { return kIsConverted ? d_head_ : rows.stride(0); }

  S* read(const Tensor& rows, int64_t first, int64_t head, int count, Buffer<S>& copy) const {
    S* const to = written(rows, first, head, count, copy);
    if constexpr (kIsConverted) row_kernels<S>().widen_rows(count, d_head_, bits_of_row(rows, first, head), rows.stride(0), to);
    return to;
  }
  /// Each is written once.
  S* written(const Tensor& rows, int64_t first, int64_t head, int count, Buffer<S>& copy) const {
    if constexpr (!kIsConverted) return row_of<S>(rows, first, head);
    return copy.of(int64_t{count} * d_head_);
  }
  /// They are 0 so far and will be added to.
  S* summed(const Tensor& rows, int64_t first, int64_t head, int count, Buffer<S>& copy) const {
    S* const sums = written(rows, first, head, count, copy);
    if constexpr (kIsConverted) std::fill_n(sums, int64_t{count} * d_head_, S(0));
    return sums;
  }
  /// Adds such rows of a tensor that is defined.
  [[gnu::always_inline]] void add(const Tensor& rows, int64_t first, int64_t count, int64_t head, core::RowsAhead& to) const {
    constexpr int64_t kBytes = sizeof(Stored);
    if (rows.defined()) to.add(row_of<Stored>(rows, first, head), count, d_head_ * kBytes, rows.stride(0) * kBytes);
  }

 private:
  static constexpr bool kIsConverted = !std::is_same_v<S, Stored>;
  int64_t d_head_;
};

}  // namespace lacuna
