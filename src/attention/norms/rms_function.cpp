#include "attention/norms/rms_function.h"

#include <algorithm>
#include <optional>

#include "base/profile.h"
#include "kernels/parallel.h"
#include "kernels/row_tensors.h"

namespace lacuna::norms {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Rows, gain [D] and gate [D] (or undefined), as the kernels take them.
struct Inputs {
  Tensor rows, gain, gate;
  double epsilon;

  template <class T>
  GatedRmsRows<T> args() const {
    return {.columns = rows.size(1),
            .input = data_of<T>(rows),
            .gain = data_of<T>(gain),
            .gate = data_of<T>(gate),
            .epsilon = static_cast<T>(epsilon),
            .result = nullptr,
            .gradient = nullptr,
            .input_gradient = nullptr,
            .gain_sums = nullptr,
            .gate_sums = nullptr};
  }
};

Tensor forward_pass(const Inputs& inputs) {
  Tensor result = at::empty_like(inputs.rows);
  with_scalar_of(result, [&](auto t) {
    using T = decltype(t);
    GatedRmsRows<T> args = inputs.args<T>();
    args.result = mutable_data_of<T>(result);
    for_rows(row_kernels<T>().gated_rms_forward, args, result.size(0));
  });
  return result;
}

struct GatedRmsFunction : torch::autograd::Function<GatedRmsFunction> {
  static Tensor forward(AutogradContext* saved, const Tensor& rows, const Tensor& gain, const std::optional<Tensor>& gate, double epsilon) {
    const Inputs inputs = {rows, gain, gate.value_or(Tensor()), epsilon};
    saved->save_for_backward({rows, gain, inputs.gate});
    saved->saved_data["epsilon"] = epsilon;
    return forward_pass(inputs);
  }

  static variable_list backward(AutogradContext* saved, const variable_list& outputs) {
    const TimedPart timed(ProfilePart::kNorm);
    const variable_list kept = saved->get_saved_variables();
    const Inputs inputs = {kept[0], kept[1], kept[2], saved->saved_data["epsilon"].toDouble()};
    const Tensor &rows = inputs.rows, gradient = outputs[0].contiguous(), of_rows = at::empty_like(rows);
    const int64_t blocks = (rows.size(0) + kRowsPerSum - 1) / kRowsPerSum;
    const bool has_gate = inputs.gate.defined();
    const Tensor sums = at::empty({has_gate ? 2 : 1, blocks, rows.size(1)}, rows.options());
    with_scalar_of(rows, [&](auto t) {
      using T = decltype(t);
      GatedRmsRows<T> args = inputs.args<T>();
      args.gradient = data_of<T>(gradient);
      args.input_gradient = mutable_data_of<T>(of_rows);
      args.gain_sums = mutable_data_of<T>(sums);
      args.gate_sums = args.gain_sums + blocks * args.columns;
      for_parts(blocks, 1, [&](int64_t first, int64_t last) {
        for (int64_t block = first; block < last; ++block)
          row_kernels<T>().gated_rms_backward(args, block * kRowsPerSum, std::min(rows.size(0), (block + 1) * kRowsPerSum));
      });
    });
    const Tensor totals = sums.sum(1);
    return {of_rows, totals[0], has_gate ? totals[1] : Tensor(), Tensor()};
  }
};

}  // namespace

Tensor gated_rms_norm(const Tensor& context, const Tensor& gain, const Tensor& gate, double epsilon) {
  const TimedPart timed(ProfilePart::kNorm);
  if (has_row_kernels(context)) {
    if (!at::GradMode::is_enabled()) return forward_pass({context.contiguous(), gain, gate, epsilon});
    return GatedRmsFunction::apply(context.contiguous(), gain, optional_of(gate), epsilon);
  }
  const Tensor normalised = context * (context.square().mean(-1, /*keepdim=*/true) + epsilon).rsqrt() * gain;
  return gate.defined() ? normalised * at::sigmoid(gate * context) : normalised;
}

}  // namespace lacuna::norms
