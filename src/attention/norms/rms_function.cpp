#include "attention/norms/rms_function.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/no_overlap.h"
#include "base/profile.h"

namespace lacuna::norms {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Rows of one block are summed in order, then the blocks: the sums over rows do not depend on threads.
constexpr int64_t kBlockRows = 64;

/// sum of f(j) over j < count, in 16 parts so that it can be vectorised.
template <class S, class F>
S sum_of(int64_t count, F f) {
  constexpr int64_t kParts = 16;
  S parts[kParts] = {};
  int64_t j = 0;
  for (; j + kParts <= count; j += kParts)
    for (int64_t i = 0; i < kParts; ++i) parts[i] += f(j + i);
  S total = 0;
  for (; j < count; ++j) total += f(j);
  for (const S part : parts) total += part;
  return total;
}

template <class S>
S inverse_rms(const S* c, int64_t width, double epsilon) {
  const S squares = sum_of<S>(width, [=](int64_t j) { return c[j] * c[j]; });
  return 1 / std::sqrt(squares / static_cast<S>(width) + static_cast<S>(epsilon));
}

/// open: the gate's sigmoid [T, D], or undefined.
template <class S>
Tensor forward_rows(const Tensor& context, const Tensor& gain, const Tensor& open, double epsilon) {
  const int64_t width = context.size(1);
  const Tensor result = at::empty_like(context);
  const S *c = context.const_data_ptr<S>(), *g = gain.const_data_ptr<S>(), *s = open.defined() ? open.const_data_ptr<S>() : nullptr;
  S* y = result.data_ptr<S>();
  at::parallel_for(0, context.size(0), kBlockRows, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin * width; at < end * width; at += width) {
      const S r = inverse_rms(c + at, width, epsilon);
      if (s == nullptr) {
        LACUNA_NO_OVERLAP
        for (int64_t j = 0; j < width; ++j) y[at + j] = c[at + j] * r * g[j];
      } else {
        LACUNA_NO_OVERLAP
        for (int64_t j = 0; j < width; ++j) y[at + j] = c[at + j] * r * g[j] * s[at + j];
      }
    }
  });
  return result;
}

template <class S>
struct BackwardRow {
  int64_t width;
  const S *c, *s, *dy, *gain, *gate;  // s and gate null without a gate
  S *dc, *dgain, *dgate;              // dgain and dgate are added to

  /// With n = c r, r = (mean(c²) + epsilon)^(-1/2) and y = gain n s:
  ///   dn = dy gain s,   dc = r (dn - n mean(dn n)) + dy gain n s (1 - s) gate.
  void run(double epsilon) const {
    const S r = inverse_rms(c, width, epsilon);
    const auto opened = [this](int64_t j) { return s == nullptr ? S(1) : s[j]; };
    const S mean = sum_of<S>(width, [&](int64_t j) { return dy[j] * gain[j] * opened(j) * c[j] * r; }) / static_cast<S>(width);
    if (s == nullptr) {
      LACUNA_NO_OVERLAP
      for (int64_t j = 0; j < width; ++j) {
        const S n = c[j] * r;
        dc[j] = r * (dy[j] * gain[j] - n * mean);
        dgain[j] += dy[j] * n;
      }
      return;
    }
    LACUNA_NO_OVERLAP
    for (int64_t j = 0; j < width; ++j) {
      const S n = c[j] * r, through_gate = dy[j] * gain[j] * n * s[j] * (1 - s[j]);
      dc[j] = r * (dy[j] * gain[j] * s[j] - n * mean) + through_gate * gate[j];
      dgain[j] += dy[j] * n * s[j];
      dgate[j] += through_gate * c[j];
    }
  }
};

template <class S>
variable_list backward_rows(const Tensor& context, const Tensor& gain, const Tensor& gate, const Tensor& open, const Tensor& of_result,
                            double epsilon) {
  const int64_t rows = context.size(0), width = context.size(1), blocks = (rows + kBlockRows - 1) / kBlockRows;
  const Tensor of_context = at::empty_like(context), partial = at::zeros({2, blocks, width}, context.options());
  const auto from = [](const Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr<S>() : nullptr; };
  S *dc = of_context.data_ptr<S>(), *sums = partial.data_ptr<S>();
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin * kBlockRows; row < std::min(end * kBlockRows, rows); ++row) {
      const int64_t at = row * width, block = row / kBlockRows;
      BackwardRow<S>{.width = width,
                     .c = from(context) + at,
                     .s = open.defined() ? from(open) + at : nullptr,
                     .dy = from(of_result) + at,
                     .gain = from(gain),
                     .gate = from(gate),
                     .dc = dc + at,
                     .dgain = sums + block * width,
                     .dgate = sums + (blocks + block) * width}
          .run(epsilon);
    }
  });
  const Tensor totals = at::zeros({2, width}, context.options());
  for (int64_t block = 0; block < blocks; ++block) totals.add_(partial.select(1, block));
  return {of_context, totals[0], gate.defined() ? totals[1] : Tensor(), Tensor()};
}

struct GatedRmsFunction : torch::autograd::Function<GatedRmsFunction> {
  static Tensor forward(AutogradContext* saved, const Tensor& context, const Tensor& gain, const std::optional<Tensor>& any_gate,
                        double epsilon) {
    const Tensor rows = context.contiguous(), gate = any_gate.value_or(Tensor());
    const Tensor open = gate.defined() ? (gate * rows).sigmoid_() : Tensor();
    saved->save_for_backward({rows, gain, gate, open});
    saved->saved_data["epsilon"] = epsilon;
    return context.scalar_type() == at::kDouble ? forward_rows<double>(rows, gain, open, epsilon)
                                                : forward_rows<float>(rows, gain, open, epsilon);
  }
  static variable_list backward(AutogradContext* saved, const variable_list& outputs) {
    const TimedPart timed(ProfilePart::kNorm);
    const auto tensors = saved->get_saved_variables();
    const double epsilon = saved->saved_data["epsilon"].toDouble();
    const auto run = tensors[0].scalar_type() == at::kDouble ? backward_rows<double> : backward_rows<float>;
    return run(tensors[0], tensors[1], tensors[2], tensors[3], outputs[0].contiguous(), epsilon);
  }
};

bool is_fused(const Tensor& context) {
  return context.is_cpu() && (context.scalar_type() == at::kFloat || context.scalar_type() == at::kDouble);
}

}  // namespace

Tensor gated_rms_norm(const Tensor& context, const Tensor& gain, const Tensor& gate, double epsilon) {
  const TimedPart timed(ProfilePart::kNorm);
  // autograd takes no undefined tensors, but optional ones
  if (is_fused(context)) return GatedRmsFunction::apply(context, gain, gate.defined() ? std::optional(gate) : std::nullopt, epsilon);
  const Tensor normalised = context * (context.square().mean(-1, /*keepdim=*/true) + epsilon).rsqrt() * gain;
  return gate.defined() ? normalised * at::sigmoid(gate * context) : normalised;
}

}  // namespace lacuna::norms
