#include "train/adam.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/no_overlap.h"
#include "kernels/parallel.h"

namespace lacuna {
namespace {

constexpr int64_t kChunk = 16384;  ///< elements that one sum runs over: fixed, so that results do not depend on threads

int64_t chunks_of(int64_t count) {
  return (count + kChunk - 1) / kChunk;
}

template <class T>
double chunk_sum_of_squares(const T* values, int64_t count) {
  constexpr int kLanes = 8;
  double sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += static_cast<double>(values[i + lane]) * static_cast<double>(values[i + lane]);
  for (; i < count; ++i) sums[0] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

template <class T>
struct Pointers {
  T *value, *gradient, *first, *second, *average;
};

template <class T, bool kAverages>
void update_range(const Pointers<T>& p, const AdamStep& step, int64_t begin, int64_t end) {
  const T scale = static_cast<T>(step.gradient_scale), l2 = static_cast<T>(step.l2), shrink = static_cast<T>(step.shrink);
  const T beta1 = static_cast<T>(step.beta1), beta2 = static_cast<T>(step.beta2), epsilon = static_cast<T>(step.epsilon);
  const T rest1 = static_cast<T>(1 - step.beta1), rest2 = static_cast<T>(1 - step.beta2);
  const T rate = static_cast<T>(step.lr / step.bias1), root2 = static_cast<T>(1 / std::sqrt(step.bias2));
  const T average_rate = static_cast<T>(step.average_rate);
  LACUNA_NO_OVERLAP
  for (int64_t i = begin; i < end; ++i) {
    const T value = p.value[i];
    const T gradient = p.gradient[i] * scale + l2 * value;
    const T first = beta1 * p.first[i] + rest1 * gradient;
    const T second = beta2 * p.second[i] + rest2 * gradient * gradient;
    const T next = shrink * value - rate * first / (std::sqrt(second) * root2 + epsilon);
    p.value[i] = next;
    p.first[i] = first;
    p.second[i] = second;
    p.gradient[i] = 0;
    if constexpr (kAverages) p.average[i] += average_rate * (next - p.average[i]);
  }
}

template <class T>
void update_on_cpu(const AdamBuffers& buffers, const AdamStep& step) {
  const auto data = [](const at::Tensor& tensor) { return tensor.defined() ? tensor.data_ptr<T>() : nullptr; };
  const Pointers<T> p = {data(buffers.values), data(buffers.gradients), data(buffers.first_moment), data(buffers.second_moment),
                         data(buffers.average)};
  const int64_t count = buffers.values.numel();
  for_parts(chunks_of(count), 1, [&](int64_t first_chunk, int64_t last_chunk) {
    const int64_t begin = first_chunk * kChunk, end = std::min(last_chunk * kChunk, count);
    if (p.average != nullptr)
      update_range<T, true>(p, step, begin, end);
    else
      update_range<T, false>(p, step, begin, end);
  });
}

}  // namespace

double sum_of_squares(const at::Tensor& flat) {
  if (!flat.is_cpu()) return flat.square().sum(at::kDouble).item<double>();
  const int64_t count = flat.numel(), chunks = chunks_of(count);
  std::vector<double> partial(static_cast<size_t>(chunks));
  for_parts(chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t first = chunk * kChunk, size = std::min(kChunk, count - first);
      partial[static_cast<size_t>(chunk)] = flat.scalar_type() == at::kDouble
                                                ? chunk_sum_of_squares(flat.const_data_ptr<double>() + first, size)
                                                : chunk_sum_of_squares(flat.const_data_ptr<float>() + first, size);
    }
  });
  double sum = 0;
  for (const double part : partial) sum += part;
  return sum;
}

void adam_update(const AdamBuffers& buffers, const AdamStep& step) {
  if (buffers.values.is_cpu() && buffers.values.scalar_type() == at::kFloat) return update_on_cpu<float>(buffers, step);
  if (buffers.values.is_cpu() && buffers.values.scalar_type() == at::kDouble) return update_on_cpu<double>(buffers, step);
  adam_update_reference(buffers, step);
}

void adam_update_reference(const AdamBuffers& buffers, const AdamStep& step) {
  const at::NoGradGuard no_grad;
  const at::Tensor gradient = buffers.gradients * step.gradient_scale + buffers.values * step.l2;
  buffers.first_moment.mul_(step.beta1).add_(gradient, 1 - step.beta1);
  buffers.second_moment.mul_(step.beta2).addcmul_(gradient, gradient, 1 - step.beta2);
  const at::Tensor denominator = (buffers.second_moment / step.bias2).sqrt_().add_(step.epsilon);
  buffers.values.mul_(step.shrink).addcdiv_(buffers.first_moment, denominator, -step.lr / step.bias1);
  if (buffers.average.defined()) buffers.average.lerp_(buffers.values, step.average_rate);
  buffers.gradients.zero_();
}

}  // namespace lacuna
