#include "attention/norms/rms.h"

#include <cmath>
#include <optional>
#include <type_traits>

#include "base/random.h"
#include "kernels/profile.h"
#include "kernels/row_tensors.h"

namespace lacuna::norms {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The inputs of gated_rms_norm: rows [T, D] of type Stored, gain [D] and gate [D] (or undefined) of type T.
struct Inputs {
  Tensor rows, gain, gate;
  double epsilon;

  template <class T, class Stored>
  GatedRmsRows<T, Stored> args() const {
    return {.columns = rows.size(1),
            .input = stored_in<Stored>(rows),
            .gain = data_of<T>(gain),
            .gate = data_of<T>(gate),
            .epsilon = static_cast<T>(epsilon),
            .result = nullptr,
            .gradient = nullptr,
            .input_gradient = nullptr,
            .gain_sums = nullptr,
            .gate_sums = nullptr,
            .inverse_rms = nullptr};
  }
  template <class Stored>
  static Stored* stored_in(const Tensor& numbers) {
    return static_cast<Stored*>(numbers.mutable_data_ptr());
  }
};

/// Calls f(kernels, arguments of the inputs).
template <class F>
void with_kernels(const Inputs& inputs, F f) {
  if (inputs.rows.scalar_type() == at::kBFloat16) return f(row_kernels<float>().rounded_gated_rms, inputs.args<float, uint16_t>());
  with_scalar_of(inputs.rows, [&](auto t) { f(row_kernels<decltype(t)>().gated_rms, inputs.args<decltype(t), decltype(t)>()); });
}

template <class T, class Stored>
void run_forward(const GatedRms<T, Stored>& loops, const GatedRmsRows<T, Stored>& args, const Tensor& rows) {
  if constexpr (std::is_same_v<T, float>) {
    const auto start = [&](const gpu::Kernels& kernels, void* stream) { return kernels.gated_rms_forward(args, rows.size(0), stream); };
    if (is_on_gpu(rows)) return with_gpu_kernels(rows, start);
  }
  for_rows(loops.forward, args, rows.size(0));
}

template <class T, class Stored>
void run_backward(const GatedRms<T, Stored>& loops, const GatedRmsRows<T, Stored>& args, const Tensor& rows) {
  if constexpr (std::is_same_v<T, float>) {
    const auto start = [&](const gpu::Kernels& kernels, void* stream) { return kernels.gated_rms_backward(args, rows.size(0), stream); };
    if (is_on_gpu(rows)) return with_gpu_kernels(rows, start);
  }
  for_sum_blocks(loops.backward, args, rows.size(0));
}

Tensor forward_pass(const Inputs& inputs) {
  Tensor result = at::empty_like(inputs.rows);
  with_kernels(inputs, [&](const auto& kernels, auto args) {
    args.result = Inputs::stored_in<std::remove_pointer_t<decltype(args.result)>>(result);
    run_forward(kernels, args, inputs.rows);
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
    const bool has_gate = inputs.gate.defined();
    const Tensor sums = at::empty({has_gate ? 2 : 1, sum_blocks(rows.size(0)), rows.size(1)}, inputs.gain.options());
    const Tensor inverse_rms = !is_on_gpu(rows) ? Tensor() : at::empty({rows.size(0)}, inputs.gain.options());
    with_kernels(inputs, [&](const auto& kernels, auto args) {
      using Stored = std::remove_pointer_t<decltype(args.result)>;
      using T = std::remove_pointer_t<decltype(args.gain_sums)>;
      args.gradient = Inputs::stored_in<Stored>(gradient);
      args.input_gradient = Inputs::stored_in<Stored>(of_rows);
      args.gain_sums = mutable_data_of<T>(sums);
      args.gate_sums = has_gate ? args.gain_sums + sums.size(1) * args.columns : nullptr;
      args.inverse_rms = mutable_data_of<T>(inverse_rms);
      run_backward(kernels, args, rows);
    });
    const Tensor totals = sums.sum(1);
    return {of_rows, totals[0], has_gate ? totals[1] : Tensor(), Tensor()};
  }
};

bool has_kernels(const Tensor& rows, const Tensor& gain) {
  if (rows.scalar_type() == at::kBFloat16) return gain.scalar_type() == at::kFloat && has_row_kernels(gain);
  return has_row_kernels(rows);
}

}  // namespace

Tensor xavier_uniform_vector(int64_t size, uint64_t key) {
  Tensor vector = at::empty({size}, at::kFloat);
  const double bound = std::sqrt(3.0 / static_cast<double>(size));
  RandomStream random(key);
  for (int64_t i = 0; i < size; ++i) vector.data_ptr<float>()[i] = static_cast<float>(bound * (2 * random.next_unit() - 1));
  return vector;
}

const float* gated_rms_norm(const float* context, int64_t rows, const Tensor& gain, const Tensor& gate, double epsilon, float* to) {
  const TimedPart timed(ProfilePart::kNorm);
  const GatedRmsRows<float, float> args = {.columns = gain.size(0),
                                           .input = context,
                                           .gain = data_of<float>(gain),
                                           .gate = data_of<float>(gate),
                                           .epsilon = static_cast<float>(epsilon),
                                           .result = to,
                                           .gradient = nullptr,
                                           .input_gradient = nullptr,
                                           .gain_sums = nullptr,
                                           .gate_sums = nullptr,
                                           .inverse_rms = nullptr};
  for_rows(row_kernels<float>().gated_rms.forward, args, rows);
  return to;
}

Tensor gated_rms_norm(const Tensor& context, const Tensor& gain, const Tensor& gate, double epsilon) {
  const TimedPart timed(ProfilePart::kNorm);
  if (has_kernels(context, gain)) {
    if (!at::GradMode::is_enabled()) return forward_pass({context.contiguous(), gain, gate, epsilon});
    return GatedRmsFunction::apply(context.contiguous(), gain, optional_of(gate), epsilon);
  }
  const Tensor rows = context.to(gain.scalar_type());  // no mean of squares in bf16
  const Tensor normalized = rows * (rows.square().mean(-1, /*keepdim=*/true) + epsilon).rsqrt() * gain;
  return gate.defined() ? normalized * at::sigmoid(gate * rows) : normalized;
}

}  // namespace lacuna::norms
