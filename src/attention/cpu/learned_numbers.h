#pragma once

#include <ATen/Functions.h>

#include <vector>

#include "attention/call.h"
#include "attention/cpu/task.h"

namespace lacuna {

/// The learned numbers of a call's rows (such as entmax's alpha) as the core reads them, in type S, and their
/// gradients, in double.
template <class S>
class LearnedNumbers {
 public:
  explicit LearnedNumbers(const AttentionCall& call) : call_(call) {
    if (call.numbers.empty()) return;
    const Tensor& first = call.numbers.front();
    const int64_t count = size();
    if (count == 1 && first.dim() == 1 && first.scalar_type() == c10::CppTypeToScalarType<S>::value && first.is_contiguous()) {
      values_ = first.as_strided({call.q.size(0), num_heads(), 1}, {0, 1, 1});  // shared by all queries, and not copied for each
      return;
    }
    values_ = at::empty({call.q.size(0), num_heads(), count}, c10::CppTypeToScalarType<S>::value);
    for (int64_t n = 0; n < count; ++n) values_.select(2, n).copy_(call.numbers[static_cast<size_t>(n)]);
  }

  /// [Tq, H, numbers], or undefined if there are none.
  const Tensor& values() const { return values_; }

  /// Allocates the gradients, zero at first; backward tasks add to them.
  void make_gradients() {
    if (values_.defined()) gradients_ = at::zeros(values_.sizes(), at::kDouble);
  }

  /// Gives the task of a sentence whose first row of q is `query` its numbers and, once made, their gradients.
  void add_to(core::Task<S>& task, int64_t query, int64_t head) const {
    if (!values_.defined()) return;
    const S* const values = values_.template const_data_ptr<S>();
    task.numbers = {values + query * values_.stride(0) + head * values_.stride(1), values_.stride(0)};
    task.heads.numbers = values_.stride(1);
    if (!gradients_.defined()) return;
    const int64_t stride = gradients_.stride(0);
    task.number_gradients = {gradients_.data_ptr<double>() + query * stride + head * size(), stride};
  }

  /// Returns the gradient of each number, in its shape: that of a number [H] is summed over queries, in order.
  std::vector<Tensor> gradients() const {
    std::vector<Tensor> result;
    for (const Tensor& number : call_.numbers) {
      Tensor total = gradients_.select(2, static_cast<int64_t>(result.size()));
      if (number.dim() == 1) total = sum_over_queries(total);
      result.push_back(total.to(number.options()));
    }
    return result;
  }

 private:
  int64_t size() const { return static_cast<int64_t>(call_.numbers.size()); }
  int64_t num_heads() const { return call_.q.size(1); }

  Tensor sum_over_queries(const Tensor& each) const {
    Tensor total = at::zeros({num_heads()}, at::kDouble);
    const auto from = each.accessor<double, 2>();
    auto to = total.accessor<double, 1>();
    for (int64_t i = 0; i < each.size(0); ++i)
      for (int64_t head = 0; head < num_heads(); ++head) to[head] += from[i][head];
    return total;
  }

  const AttentionCall& call_;
  Tensor values_, gradients_;
};

}  // namespace lacuna
