#pragma once

// Activations over rows, forward and backward. Included by row_kernels.cpp.

#include "kernels/row_loops.h"

namespace lacuna {
namespace LACUNA_TARGET {
namespace {

struct Relu {
  template <class T>
  LACUNA_INLINE static T value(T x) {
    return relu(x);
  }
};
struct Gelu {
  template <class T>
  LACUNA_INLINE static T value(T x) {
    return gelu(x);
  }
  template <class T>
  LACUNA_INLINE static T slope(T x) {
    return gelu_slope(x);
  }
};
struct Swish {
  template <class T>
  LACUNA_INLINE static T value(T x) {
    return swish(x);
  }
  template <class T>
  LACUNA_INLINE static T slope(T x) {
    return swish_slope(x);
  }
};

/// Calls use(f) with an activation that has a slope everywhere. Its loops are compiled for each.
template <class Use>
LACUNA_INLINE void with_smooth_activation(Activation activation, const Use& use) {
  if (activation == Activation::kGelu) {
    use(Gelu());
  } else {
    use(Swish());
  }
}

template <class Use>
LACUNA_INLINE void with_activation(Activation activation, const Use& use) {
  if (activation == Activation::kRelu) {
    use(Relu());
  } else {
    with_smooth_activation(activation, use);
  }
}

template <class T>
void activation_forward(const ActivationRows<T>& a, int64_t begin, int64_t end) {
  DropoutCursor<T> cursor(a.dropout, begin);
  for (int64_t row = begin; row < end; ++row, cursor.next_row()) {
    const T* x = a.input + row * a.columns;
    T* y = a.result + row * a.columns;
    with_activation(a.activation,
                    [&](auto f) { for_each_dropped(cursor, a.columns, [=](int64_t i, T factor) { y[i] = factor * f.value(x[i]); }); });
  }
}

template <class T>
void activation_backward(const ActivationRows<T>& a, int64_t begin, int64_t end) {
  DropoutCursor<T> cursor(a.dropout, begin);
  const T scale = a.dropout.threshold > 0 ? static_cast<T>(a.dropout.scale) : T(1);
  for (int64_t row = begin; row < end; ++row, cursor.next_row()) {
    const int64_t at = row * a.columns;
    const T *dy = a.gradient + at, *y = a.result + at, *x = a.input + at;
    T* dx = a.input_gradient + at;
    if (a.activation == Activation::kRelu) {
      // y is 0 or -0 where the unit was inactive or dropped, only there: no random numbers are needed. NaN lets the gradient pass
#pragma omp simd
      for (int64_t i = 0; i < a.columns; ++i) dx[i] = y[i] <= 0 ? T(0) : dy[i] * scale;
    } else {
      with_smooth_activation(a.activation, [&](auto f) {
        for_each_dropped(cursor, a.columns, [=](int64_t i, T factor) { dx[i] = dy[i] * factor * f.slope(x[i]); });
      });
    }
  }
}

template <class T, class Stored>
void biased_activation_forward(const BiasedActivationRows<T, Stored>& a, int64_t begin, int64_t end) {
  DropoutCursor<T> cursor(a.dropout, begin);
  for (int64_t row = begin; row < end; ++row, cursor.next_row()) {
    const T *x = a.input + (row - a.first_row) * a.columns, *bias = a.bias;
    Stored* y = a.result + row * a.columns;
    with_activation(a.activation, [&](auto f) {
      for_each_dropped(cursor, a.columns, [=](int64_t i, T factor) { y[i] = stored<Stored>(factor * f.value(x[i] + bias[i])); });
    });
  }
}

template <class T, class Stored>
void biased_activation_backward(const BiasedActivationRows<T, Stored>& a, int64_t begin, int64_t end) {
  DropoutCursor<T> cursor(a.dropout, begin);
  const T scale = a.dropout.threshold > 0 ? static_cast<T>(a.dropout.scale) : T(1);
  T* sums = a.bias_sums + begin / kRowsPerSum * a.columns;
  for (int64_t i = 0; i < a.columns; ++i) sums[i] = 0;
  for (int64_t row = begin; row < end; ++row, cursor.next_row()) {
    const int64_t at = row * a.columns;
    const T* dy = a.gradient + (row - a.first_row) * a.columns;
    const Stored* y = a.result + at;
    Stored* dx = a.input_gradient + at;
    if (a.activation == Activation::kRelu) {  // as above
#pragma omp simd
      for (int64_t i = 0; i < a.columns; ++i) {
        const T gradient = loaded<T>(y[i]) <= 0 ? T(0) : dy[i] * scale;
        sums[i] += gradient;
        dx[i] = stored<Stored>(gradient);
      }
    } else {
      const T *x = a.input + at, *bias = a.bias;
      with_smooth_activation(a.activation, [&](auto f) {
        for_each_dropped(cursor, a.columns, [=](int64_t i, T factor) {
          const T gradient = dy[i] * factor * f.slope(x[i] + bias[i]);
          sums[i] += gradient;
          dx[i] = stored<Stored>(gradient);
        });
      });
    }
  }
}

template <class T>
void swiglu_forward(const SwigluRows<T>& a, int64_t begin, int64_t end) {
  DropoutCursor<T> cursor(a.dropout, begin);
  for (int64_t row = begin; row < end; ++row, cursor.next_row()) {
    const T *gate = a.input + row * 2 * a.columns, *value = gate + a.columns;
    T* y = a.result + row * a.columns;
    for_each_dropped(cursor, a.columns, [=](int64_t i, T factor) { y[i] = factor * swish(gate[i]) * value[i]; });
  }
}

template <class T>
void swiglu_backward(const SwigluRows<T>& a, int64_t begin, int64_t end) {
  DropoutCursor<T> cursor(a.dropout, begin);
  for (int64_t row = begin; row < end; ++row, cursor.next_row()) {
    const T *gate = a.input + row * 2 * a.columns, *value = gate + a.columns, *dy = a.gradient + row * a.columns;
    T *d_gate = a.input_gradient + row * 2 * a.columns, *d_value = d_gate + a.columns;
    for_each_dropped(cursor, a.columns, [=](int64_t i, T factor) {
      const T gradient = dy[i] * factor;
      d_gate[i] = gradient * value[i] * swish_slope(gate[i]);
      d_value[i] = gradient * swish(gate[i]);
    });
  }
}

}  // namespace
}  // namespace LACUNA_TARGET
}  // namespace lacuna
