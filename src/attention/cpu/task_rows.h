#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <type_traits>

#include "attention/cpu/core_thread.h"
#include "kernels/row_kernels.h"

namespace lacuna {

/// Pointer to head `head` of row `row`; null for a tensor without rows, which has no memory.
template <class Number>
Number* row_of(const Tensor& rows, int64_t row, int64_t head) {
  Number* const first = rows.data_ptr<Number>();
  return first != nullptr ? first + row * rows.stride(0) + head * rows.stride(1) : nullptr;
}
/// The same for a bf16 tensor, as the bits of its numbers.
inline uint16_t* bits_of_row(const Tensor& rows, int64_t row, int64_t head) {
  at::BFloat16* const first = row_of<at::BFloat16>(rows, row, head);
  return first != nullptr ? &first->x : nullptr;
}

/// Rows of a tensor as a task takes them: in place or, if the tensor is of another type, in a contiguous copy.
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
  /// For rows that the task writes once each.
  S* written(const Tensor& rows, int64_t first, int64_t head, int count, Buffer<S>& copy) const {
    if constexpr (!kIsConverted) return row_of<S>(rows, first, head);
    return copy.of(int64_t{count} * d_head_);
  }
  /// For rows that the task adds to: they are zero at first.
  S* summed(const Tensor& rows, int64_t first, int64_t head, int count, Buffer<S>& copy) const {
    S* const sums = written(rows, first, head, count, copy);
    if constexpr (kIsConverted) std::fill_n(sums, int64_t{count} * d_head_, S(0));
    return sums;
  }
  /// Adds these rows to those that are prefetched, if the tensor is defined.
  [[gnu::always_inline]] void add(const Tensor& rows, int64_t first, int64_t count, int64_t head, core::RowsAhead& to) const {
    constexpr int64_t kBytes = sizeof(Stored);
    if (rows.defined()) to.add(row_of<Stored>(rows, first, head), count, d_head_ * kBytes, rows.stride(0) * kBytes);
  }

 private:
  static constexpr bool kIsConverted = !std::is_same_v<S, Stored>;
  int64_t d_head_;
};

}  // namespace lacuna
