#include "kernels/residual_norm.h"

#include "kernels/profile.h"
#include "kernels/reference.h"
#include "kernels/residual_norm_rows.h"

namespace lacuna {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Processes all rows.
ResidualNorm forward_pass(const ResidualNormRows& rows, const Tensor& residual, const Tensor& output) {
  if (has_gpu_rows(residual)) {
    rows.take_on_gpu(output);
    return rows.result();
  }
  with_scalar_of(residual, [&](auto t) {
    using T = decltype(t);
    const T* const first = data_of<T>(output);
    for_parts(residual.size(0), kRowsPerTask,
              [&](int64_t begin, int64_t end) { rows.take(first == nullptr ? nullptr : first + begin * residual.size(1), begin, end); });
  });
  return rows.result();
}

/// Processes all rows; `sum` is one of their tensors.
template <class T, class Normed, class Output>
void backward_pass(void (*loop)(const ResidualNormBackward<T, Normed, Output>&, int64_t, int64_t),
                   const ResidualNormBackward<T, Normed, Output>& args, const Tensor& sum) {
  if constexpr (std::is_same_v<T, float>) {
    const auto start = [&](const gpu::Kernels& kernels, void* stream) { return kernels.residual_norm_backward(args, sum.size(0), stream); };
    if (has_gpu_rows(sum)) return with_gpu_kernels(sum, start);
  }
  for_sum_blocks(loop, args, sum.size(0));
}

class ResidualNormFunction : public torch::autograd::Function<ResidualNormFunction> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& residual, const std::optional<Tensor>& maybe_output,
                               const Tensor& gain, const std::optional<Tensor>& bias, const Dropout& dropout, bool is_rms, double epsilon,
                               Precision readers) {
    const ResidualEnd end = {residual, dropout, {gain, bias.value_or(Tensor()), is_rms, epsilon}, readers};
    const Tensor output = maybe_output.value_or(Tensor());
    const ResidualNormRows rows(end, output.defined(), /*for_backward=*/true);
    const ResidualNorm result = forward_pass(rows, residual, output);
    context->save_for_backward(rows.kept());
    context->saved_data["has_output"] = output.defined();
    context->saved_data["is_rms"] = is_rms;
    keep_dropout(*context, dropout);
    context->set_materialize_grads(false);
    if (!output.defined()) return {result.normed};
    return {result.sum, result.normed};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const bool has_output = context->saved_data["has_output"].toBool();
    const ResidualNormGradients to = residual_norm_gradients({.kept = context->get_saved_variables(),
                                                              .sum_gradient = has_output ? gradients.front() : Tensor(),
                                                              .normed_gradient = gradients.back(),
                                                              .dropout = kept_dropout(*context),
                                                              .is_rms = context->saved_data["is_rms"].toBool()},
                                                             {.is_wanted = has_output});
    return {to.residual, to.output, to.gain, to.bias, Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

ResidualNormRows::ResidualNormRows(const ResidualEnd& end, bool has_output, bool for_backward)
    : end_(end), dropout_(end.dropout.rows(end.residual.device())), sum_(has_output ? at::empty_like(end.residual) : end.residual) {
  const bool may_be_rounded = end.readers == Precision::kBf16 && end.residual.scalar_type() == at::kFloat;
  const bool is_rounded = may_be_rounded && (for_backward || is_on_gpu(end.residual));
  normed_ = is_rounded ? at::empty_like(end.residual, at::kBFloat16) : at::empty_like(end.residual);
  if (!for_backward) return;
  mean_ = at::empty({end.residual.size(0)}, end.residual.options());
  inverse_deviation_ = at::empty_like(mean_);
}

void ResidualNormRows::take_on_gpu(const Tensor& output) const {
  const int64_t rows = end_.residual.size(0);
  const auto start = [&](const auto* data) {
    using Output = std::remove_cvref_t<decltype(*data)>;
    with_gpu_kernels(end_.residual, [&](const gpu::Kernels& kernels, void* stream) {
      return is_rounded() ? kernels.residual_norm_forward(arguments<float, uint16_t, Output>(data, 0), rows, stream)
                          : kernels.residual_norm_forward(arguments<float, float, Output>(data, 0), rows, stream);
    });
  };
  const bool output_is_rounded = output.defined() && output.scalar_type() == at::kBFloat16;
  output_is_rounded ? start(const_bf16_bits_of(output)) : start(data_of<float>(output));
}

ResidualNormGradients residual_norm_gradients(const ResidualNormBackwardInputs& in, const OutputGradient& output) {
  const TimedPart timed(ProfilePart::kNorm);
  const Tensor &sum = in.kept[0], &mean = in.kept[1], &inverse_deviation = in.kept[2], &gain = in.kept[3];
  const int64_t rows = sum.size(0), columns = sum.size(1);
  const Tensor sum_gradient = in.sum_gradient.defined() ? in.sum_gradient.contiguous() : Tensor();
  const Tensor normed_gradient = in.normed_gradient.defined() ? in.normed_gradient.contiguous() : at::zeros_like(sum);
  const bool is_alike = in.dropout.rate == 0 && !output.is_rounded;  // the output's gradient and the residual's
  const bool is_written = output.is_wanted && (!is_alike || output.wants_sums);
  const int64_t rows_per_sum = has_gpu_rows(sum) ? gpu::kRowsPerNormSum : kRowsPerSum, parts = (rows + rows_per_sum - 1) / rows_per_sum;
  const Tensor sums = at::empty({output.wants_sums ? 3 : 2, parts, columns}, sum.options());
  ResidualNormGradients to;
  to.residual = at::empty_like(sum);
  if (is_written) to.output = at::empty_like(sum, output.is_rounded ? at::kBFloat16 : sum.scalar_type());
  with_scalar_of(sum, [&](auto t) {
    using T = decltype(t);
    const bool normed_is_rounded = normed_gradient.scalar_type() == at::kBFloat16;
    with_residual_norm_kernels<T>(normed_is_rounded, output.is_rounded, [&](const auto& kernels, auto of_normed, auto of_output) {
      using Normed = decltype(of_normed);
      using Output = decltype(of_output);
      const ResidualNormBackward<T, Normed, Output> args = {
          .columns = columns,
          .normed_gradient = static_cast<const Normed*>(normed_gradient.const_data_ptr()),
          .sum_gradient = data_of<T>(sum_gradient),
          .sum = data_of<T>(sum),
          .mean = data_of<T>(mean),
          .inverse_deviation = data_of<T>(inverse_deviation),
          .dropout = in.dropout.rows(sum.device()),
          .is_rms = in.is_rms,
          .gain = data_of<T>(gain),
          .residual_gradient = mutable_data_of<T>(to.residual),
          .output_gradient = is_written ? static_cast<Output*>(to.output.mutable_data_ptr()) : nullptr,
          .gain_sums = mutable_data_of<T>(sums[0]),
          .bias_sums = mutable_data_of<T>(sums[1]),
          .output_sums = output.wants_sums ? mutable_data_of<T>(sums[2]) : nullptr};
      backward_pass(kernels.backward, args, sum);
    });
  });
  if (output.is_wanted && !is_written) to.output = to.residual;
  if (is_on_gpu(sum)) {  // where starting a sum takes longer than summing
    const std::vector<Tensor> totals = sums.sum(1).unbind(0);
    to.gain = totals[0];
    if (!in.is_rms) to.bias = totals[1];
    if (output.wants_sums) to.output_sums = totals[2];
    return to;
  }
  to.gain = sums[0].sum(0);
  if (!in.is_rms) to.bias = sums[1].sum(0);
  if (output.wants_sums) to.output_sums = sums[2].sum(0);
  return to;
}

ResidualNorm residual_norm(const ResidualEnd& given, const Tensor& given_output) {
  const TimedPart timed(ProfilePart::kNorm);
  if (!has_row_kernels(given.residual)) return reference::residual_norm(given, given_output);
  ResidualEnd end = given;
  end.residual = given.residual.contiguous();
  const Tensor output = given_output.defined() ? given_output.contiguous() : given_output;
  if (!at::GradMode::is_enabled())
    return forward_pass(ResidualNormRows(end, output.defined(), /*for_backward=*/false), end.residual, output);
  const variable_list results = ResidualNormFunction::apply(end.residual, optional_of(output), end.norm.gain, optional_of(end.norm.bias),
                                                            end.dropout, end.norm.is_rms, end.norm.given_epsilon, end.readers);
  return {output.defined() ? results.front() : end.residual, results.back()};
}

void residual_norm(const NormWeights& norm, int64_t rows, const float* residual, const float* output, float* sum, float* normed) {
  const TimedPart timed(ProfilePart::kNorm);
  const ResidualNormForward<float, float> args = {.columns = norm.gain.size(0),
                                                  .residual = residual,
                                                  .output = output,
                                                  .first_row = 0,
                                                  .dropout = {},
                                                  .is_rms = norm.is_rms,
                                                  .gain = data_of<float>(norm.gain),
                                                  .bias = data_of<float>(norm.bias),
                                                  .epsilon = static_cast<float>(norm.epsilon()),
                                                  .sum = output == nullptr ? nullptr : sum,
                                                  .normed = normed,
                                                  .mean = nullptr,
                                                  .inverse_deviation = nullptr};
  for_rows(row_kernels<float>().residual_norm.forward, args, rows);
}

}  // namespace lacuna
