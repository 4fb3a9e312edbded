#pragma once

#include "kernels/gpu/activation.h"

/// The norm of attention's context: a warp for each row.
namespace lacuna::gpu {

/// An element of gated_rms: x, its gate, and how far that is open: sigmoid(gate x). 0 and 1 where there is no gate.
struct GatedElement {
  float x, gate, open;

  template <class Stored>
  LACUNA_KERNEL_CODE static GatedElement of(const GatedRmsRows<float, Stored>& a, int64_t at, int64_t column) {
    const float x = loaded(a.input[at]);
    if (a.gate == nullptr) return {x, 0, 1};
    return {x, a.gate[column], sigmoid(a.gate[column] * x)};
  }
};

template <class Stored>
struct GatedRmsKernel {
  using Args = GatedRmsRows<float, Stored>;
  static constexpr int kWarps = 4, kSharedBytes = 0;

 protected:
  /// Calls f(column) for the lane's elements: the same ones in every loop, so that it may read what it wrote.
  template <class Block, class F>
  LACUNA_KERNEL_CODE static void for_each(const Block& block, const Args& a, const F& f) {
    for (int64_t column = block.lane(); column < a.columns; column += kLanes) f(column);
  }
  template <class Block>
  LACUNA_KERNEL_CODE static float inverse_rms(const Block& block, const Args& a, int64_t at) {
    float squares = 0;
    for_each(block, a, [&](int64_t i) { squares += loaded(a.input[at + i]) * loaded(a.input[at + i]); });
    return 1 / sqrtf(warp_sum(block, squares) / static_cast<float>(a.columns) + a.epsilon);
  }
};

template <class Stored>
struct NormalizeGated : GatedRmsKernel<Stored> {
  using typename GatedRmsKernel<Stored>::Args;

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& a, int64_t rows) {
    const int64_t row = block.index() * NormalizeGated::kWarps + block.warp(), at = row * a.columns;
    if (row >= rows) return;
    const float inverse = NormalizeGated::inverse_rms(block, a, at);
    NormalizeGated::for_each(block, a, [&](int64_t i) {
      const GatedElement e = GatedElement::of(a, at + i, i);
      a.result[at + i] = stored<Stored>(e.x * inverse * a.gain[i] * e.open);
    });
  }
};

/// Does what gated_rms_backward of row_kernels.cpp does, except for the sums over rows, which need a.inverse_rms.
template <class Stored>
struct DenormalizeGated : GatedRmsKernel<Stored> {
  using typename GatedRmsKernel<Stored>::Args;

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& a, int64_t rows) {
    const int64_t row = block.index() * DenormalizeGated::kWarps + block.warp(), at = row * a.columns;
    if (row >= rows) return;
    const auto g_of = [&](const GatedElement& e, int64_t i) { return loaded(a.gradient[at + i]) * a.gain[i] * e.open; };
    const float inverse = DenormalizeGated::inverse_rms(block, a, at);
    float sum_gx = 0;
    DenormalizeGated::for_each(block, a, [&](int64_t i) {
      const GatedElement e = GatedElement::of(a, at + i, i);
      sum_gx += g_of(e, i) * e.x;
    });
    const float mean_gh = warp_sum(block, sum_gx) * inverse / static_cast<float>(a.columns);
    DenormalizeGated::for_each(block, a, [&](int64_t i) {
      const GatedElement e = GatedElement::of(a, at + i, i);
      const float g = g_of(e, i), h = e.x * inverse;
      a.input_gradient[at + i] = stored<Stored>((g - h * mean_gh) * inverse + g * h * (1 - e.open) * e.gate);
    });
    if (block.lane() == 0) a.inverse_rms[row] = inverse;
  }
};

template <class Stored>
struct SumGatedGradients : ColumnSums<2> {
  using Args = GatedRmsRows<float, Stored>;

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& a, int64_t rows) {
    ColumnSums<2>::run(block, rows, a.columns, {a.gain_sums, a.gate_sums}, [&](int64_t row, int64_t column, Quad* parts) {
      for (int k = 0; k < Quad::kSize && column + k < a.columns; ++k) {
        const int64_t i = row * a.columns + column + k;
        const GatedElement e = GatedElement::of(a, i, column + k);
        const float part = loaded(a.gradient[i]) * e.x * a.inverse_rms[row] * e.open;
        parts[0].x[k] += part;
        parts[1].x[k] += part * a.gain[column + k] * (1 - e.open) * e.x;
      }
    });
  }
};

}  // namespace lacuna::gpu
