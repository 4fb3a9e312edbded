#pragma once

#include <algorithm>
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

/// What decides about an update beside its number and the gradient's norm.
struct AdamRule {
  double lr = 0;
  double gradient_scale = 1;  ///< factor of the stored gradient: 1 / tokens
  double clip_norm = 0;       ///< 0 = none
  double beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  bool decouples = false;  ///< the weight decay, as adamw does
  double ema_decay = 0;

  /// Returns update `number` for a gradient of this norm, which has the factor already.
  LACUNA_HOST_DEVICE AdamStep step(int64_t number, double norm) const {
    const double t = static_cast<double>(number);
    const bool clips = clip_norm > 0 && norm > clip_norm;
    return {.lr = lr,
            .gradient_scale = clips ? gradient_scale * clip_norm / norm : gradient_scale,
            .beta1 = beta1,
            .beta2 = beta2,
            .epsilon = epsilon,
            .bias1 = 1 - std::pow(beta1, t),
            .bias2 = 1 - std::pow(beta2, t),
            .l2 = decouples ? 0 : weight_decay,
            .shrink = decouples ? 1 - lr * weight_decay : 1,
            .average_rate = std::max(1 - ema_decay, 9 / (t + 9))};
  }
};

/// The scalars of an AdamStep, converted to the type of the elements.
template <class T>
struct AdamNumbers {
  T scale, l2, shrink, beta1, beta2, rest1, rest2, epsilon, rate, root2, average_rate;

  LACUNA_HOST_DEVICE explicit AdamNumbers(const AdamStep& step)
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
  uint16_t* rounded = nullptr;  ///< the new values in bf16, of a GPU's kernel; null = none
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

/// The step of one group of parameters, in a GPU's memory.
struct UpdateDecision {
  AdamNumbers<float> numbers;
  int32_t applies;  ///< 0 = the update is left out
};

/// The outcome of an update, in a GPU's memory: of the main and the auxiliary group of parameters.
struct UpdateRecord {
  double norms[2];     ///< of the gradient, before clipping; 0 where a group was not updated
  int64_t updates[2];  ///< so far
  int64_t is_finite;
};

/// What the kernel reads that decides about an update: on a GPU, all but the rule.
struct DecisionArgs {
  AdamRule rule;
  int32_t groups;            ///< 2 = the auxiliary one, too
  const double* squares[2];  ///< of the gradient
  const double* loss;
  UpdateDecision* decisions[2];
  UpdateRecord* record;  ///< read and written
};

/// The functions that start Adam's kernels. Each returns null or an error message.
struct AdamKernels {
  /// Updates `count` elements by `decision`, or if that is null by `step`.
  const char* (*update)(const AdamPointers<float>& pointers, const AdamStep& step, const UpdateDecision* decision, int64_t count,
                        void* stream);
  const char* (*decide)(const DecisionArgs& args, void* stream);
};

/// The kernels that nvcc has compiled. Exist in builds with CUDA only.
const AdamKernels& compiled_adam_kernels();

/// For tests that emulate kernels: buffers on the CPU are updated by these; null ends that.
void emulate_adam(const AdamKernels* kernels);

}  // namespace lacuna
