#pragma once

#include <cmath>
#include <cstdint>

#include "base/macros.h"

/// Adam's arithmetic, for one element at a time, on every device.
namespace lacuna {

/// The scalars of one update, with powers and scales computed.
struct AdamStep {
  double lr = 0;
  double gradient_scale = 1;  ///< factor of the stored gradient: 1 / tokens, and clipping
  double beta1 = 0, beta2 = 0, epsilon = 0;
  double bias1 = 1, bias2 = 1;  ///< 1 - beta^t
  double l2 = 0;                ///< weight_decay, if the optimizer is adam
  double shrink = 1;            ///< 1 - lr * weight_decay, if it is adamw
  double average_rate = 0;      ///< step of the moving average towards the weights
};

/// The scalars of an AdamStep, converted to the type of the elements.
template <class T>
struct AdamNumbers {
  T scale, l2, shrink, beta1, beta2, rest1, rest2, epsilon, rate, root2, average_rate;

  explicit AdamNumbers(const AdamStep& step)
      : scale(static_cast<T>(step.gradient_scale)),
        l2(static_cast<T>(step.l2)),
        shrink(static_cast<T>(step.shrink)),
        beta1(static_cast<T>(step.beta1)),
        beta2(static_cast<T>(step.beta2)),
        rest1(static_cast<T>(1 - step.beta1)),
        rest2(static_cast<T>(1 - step.beta2)),
        epsilon(static_cast<T>(step.epsilon)),
        rate(static_cast<T>(step.lr / step.bias1)),
        root2(static_cast<T>(1 / std::sqrt(step.bias2))),
        average_rate(static_cast<T>(step.average_rate)) {}
};

/// First elements of the buffers and of the gradient that belongs to them.
template <class T>
struct AdamPointers {
  T *value, *first, *second;
  T* average;  ///< null = none
  const T* gradient;
};

template <class T, bool kAverages>
LACUNA_HOST_DEVICE inline void update_element(const AdamPointers<T>& p, const AdamNumbers<T>& n, int64_t i) {
  const T value = p.value[i];
  const T gradient = p.gradient[i] * n.scale + n.l2 * value;
  const T first = n.beta1 * p.first[i] + n.rest1 * gradient;
  const T second = n.beta2 * p.second[i] + n.rest2 * gradient * gradient;
  const T next = n.shrink * value - n.rate * first / (std::sqrt(second) * n.root2 + n.epsilon);
  p.value[i] = next;
  p.first[i] = first;
  p.second[i] = second;
  if constexpr (kAverages) p.average[i] += n.average_rate * (next - p.average[i]);
}

/// Updates `count` elements on the current GPU. Returns null or an error message. Exists in builds with CUDA only.
const char* adam_update_on_gpu(const AdamPointers<float>& pointers, const AdamStep& step, int64_t count, void* stream);

/// For tests that emulate kernels: makes adam_update() call this for buffers on the CPU, in place of its loop; null ends that.
void emulate_adam(const char* (*update)(const AdamPointers<float>& pointers, const AdamStep& step, int64_t count, void* stream));

}  // namespace lacuna
