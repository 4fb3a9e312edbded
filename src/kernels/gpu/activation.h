#pragma once

#include "kernels/gpu/column_sums.h"

/// Activations with dropout.
namespace lacuna::gpu {

LACUNA_KERNEL_CODE float normal_below(float x) {  // the normal distribution's share below x
#ifdef __CUDACC__
  return normcdff(x);
#else
  return .5f * std::erfc(-x * .707106781f);
#endif
}
/// Returns x, or the nearer of -far and far where it is beyond; NaN stays.
LACUNA_KERNEL_CODE float within(float x, float far) {
  if (x < -far) return -far;
  return x > far ? far : x;
}
LACUNA_KERNEL_CODE float gelu(float x) {
  constexpr float kLowest = -3.402823466e38f;
  x = x < kLowest ? kLowest : x;  // -infinity times 0 would be NaN; NaN stays
  return x * normal_below(x);
}
LACUNA_KERNEL_CODE float gelu_slope(float x) {
  constexpr float kDensityAt0 = .398942280f;  // of the normal distribution
  constexpr float kFar = 40;                  // from there on 0 and 1, to rounding
  x = within(x, kFar);
  return normal_below(x) + x * kDensityAt0 * expf(-.5f * x * x);
}
LACUNA_KERNEL_CODE float relu(float x) {
  return x < 0 ? 0.f : x;  // NaN stays
}
LACUNA_KERNEL_CODE float sigmoid(float x) {
  return 1 / (1 + expf(-x));
}
LACUNA_KERNEL_CODE float swish(float x) {
  constexpr float kFar = 87;
  x = x < -kFar ? -kFar : x;  // -infinity times 0 would be NaN; NaN stays
  return x / (1 + expf(-x));
}
LACUNA_KERNEL_CODE float swish_slope(float x) {
  constexpr float kFar = 40;  // from there on 0 and 1, to rounding
  x = within(x, kFar);
  return (1 + x / (1 + expf(x))) / (1 + expf(-x));
}
LACUNA_KERNEL_CODE float activated(Activation activation, float x) {
  if (activation == Activation::kRelu) return relu(x);
  return activation == Activation::kGelu ? gelu(x) : swish(x);
}

/// The base of kernels in which a thread works on the features that one block of random bits decides about.
struct Elementwise {
  static constexpr int kWarps = 4, kSharedBytes = 0;

  /// Calls f(i, factor) for this thread's elements i of [rows, columns]: 0, or the factor of a kept element.
  template <class Block, class F>
  LACUNA_KERNEL_CODE static void run(const Block& block, const DropoutRows& dropout, int64_t columns, int64_t rows, const F& f) {
    const FeatureBlocks features{columns};
    const int64_t own = (block.index() * kWarps + block.warp()) * kLanes + block.lane(), row = own / features.count();
    if (row >= rows) return;
    const DroppedRow dropped(dropout, row);
    const PhiloxBlock bits = dropped.draw(own % features.count());
    features.for_each(own % features.count(), [&](int64_t i, int64_t half) { f(row * columns + i, dropped.factor<float>(bits, half)); });
  }
};

template <class Stored>
struct Activate : Elementwise {
  using Args = ActivationRows<Stored>;

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& a, int64_t rows) {
    Elementwise::run(block, a.dropout, a.columns, rows,
                     [&](int64_t i, float factor) { a.result[i] = stored<Stored>(factor * activated(a.activation, loaded(a.input[i]))); });
  }
};

struct Drop : Elementwise {
  using Args = DropRows<float>;

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& a, int64_t rows) {
    Elementwise::run(block, a.dropout, a.columns, rows, [&](int64_t i, float factor) { a.result[i] = factor * a.input[i]; });
  }
};

/// The gradient of the input of Activate, and its column sums.
template <class Stored>
struct Deactivate : ColumnSums<1> {
  using Args = ActivationGradientRows<Stored>;

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& args, int64_t rows) {
    const ActivationRows<Stored>& a = args.rows;
    ColumnSums<1>::run(block, rows, a.columns, {args.sums}, [&](int64_t row, int64_t column, Quad* parts) {
      const int64_t i = row * a.columns + column, left = a.columns - column;
      const Quad gradient = load_quad(a.gradient + i, left);
      const Quad dx = a.activation == Activation::kRelu ? of_relu(a, gradient, i, left) : of_smooth(a, gradient, row, column);
      for (int k = 0; k < Quad::kSize; ++k) parts->x[k] += dx.x[k];
      store_quad(a.input_gradient + i, dx, left);
    });
  }

 private:
  /// The result is 0 or -0 where the unit was inactive or dropped, only there; NaN lets the gradient pass.
  LACUNA_KERNEL_CODE static Quad of_relu(const ActivationRows<Stored>& a, const Quad& gradient, int64_t i, int64_t left) {
    const float scale = a.dropout.threshold > 0 ? static_cast<float>(a.dropout.scale) : 1.f;
    const Quad result = load_quad<Stored>(a.result + i, left);
    Quad dx;
    for (int k = 0; k < Quad::kSize; ++k) dx.x[k] = result.x[k] <= 0 ? 0.f : gradient.x[k] * scale;
    return dx;
  }
  LACUNA_KERNEL_CODE static Quad of_smooth(const ActivationRows<Stored>& a, const Quad& gradient, int64_t row, int64_t column) {
    const DroppedRow dropped(a.dropout, row);
    const Quad input = load_quad(a.input + row * a.columns + column, a.columns - column);
    Quad dx;
    for (int k = 0; k < Quad::kSize; ++k) {
      const float slope = a.activation == Activation::kGelu ? gelu_slope(input.x[k]) : swish_slope(input.x[k]);
      dx.x[k] = gradient.x[k] * dropped.template factor_of<float>(column + k) * slope;
    }
    return dx;
  }
};

}  // namespace lacuna::gpu
