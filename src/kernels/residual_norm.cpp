#include "kernels/residual_norm.h"

#include "base/profile.h"
#include "kernels/reference.h"
#include "kernels/row_tensors.h"

namespace lacuna {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Saved {
  Tensor sum, normed, mean, inverse_deviation;
};

template <class T>
void run_forward(const Tensor& residual, const Tensor& output, const Dropout& dropout, const NormWeights& norm, const Saved& to) {
  const ResidualNormForward<T> args = {.columns = residual.size(1),
                                       .residual = data_of<T>(residual),
                                       .output = data_of<T>(output),
                                       .dropout = dropout.rows(),
                                       .is_rms = norm.is_rms,
                                       .gain = data_of<T>(norm.gain),
                                       .bias = data_of<T>(norm.bias),
                                       .epsilon = static_cast<T>(norm.is_rms ? kRmsNormEpsilon : kLayerNormEpsilon),
                                       .sum = mutable_data_of<T>(to.sum),
                                       .normed = mutable_data_of<T>(to.normed),
                                       .mean = mutable_data_of<T>(to.mean),
                                       .inverse_deviation = mutable_data_of<T>(to.inverse_deviation)};
  for_rows(row_kernels<T>().residual_norm_forward, args, residual.size(0));
}

Saved forward_pass(const Tensor& residual, const Tensor& output, const Dropout& dropout, const NormWeights& norm, bool for_backward) {
  Saved to;
  to.normed = at::empty_like(residual);
  if (output.defined()) {
    to.sum = at::empty_like(residual);
  } else if (for_backward) {
    to.sum = residual;
  }
  if (for_backward) {
    to.mean = at::empty({residual.size(0)}, residual.options());
    to.inverse_deviation = at::empty({residual.size(0)}, residual.options());
  }
  Saved written = to;
  if (!output.defined()) written.sum = Tensor();  // the sum is the residual itself
  with_scalar_of(residual, [&](auto t) { run_forward<decltype(t)>(residual, output, dropout, norm, written); });
  return to;
}

struct Gradients {
  Tensor residual, output, gain, bias;
};

template <class T>
void run_backward(const Gradients& to, const Tensor& normed_gradient, const Tensor& sum_gradient, const Saved& saved,
                  const Dropout& dropout, const NormWeights& norm) {
  const ResidualNormBackward<T> args = {.columns = saved.sum.size(1),
                                        .normed_gradient = data_of<T>(normed_gradient),
                                        .sum_gradient = data_of<T>(sum_gradient),
                                        .sum = data_of<T>(saved.sum),
                                        .mean = data_of<T>(saved.mean),
                                        .inverse_deviation = data_of<T>(saved.inverse_deviation),
                                        .dropout = dropout.rows(),
                                        .is_rms = norm.is_rms,
                                        .gain = data_of<T>(norm.gain),
                                        .residual_gradient = mutable_data_of<T>(to.residual),
                                        .output_gradient = mutable_data_of<T>(to.output),
                                        .gain_sums = mutable_data_of<T>(to.gain),
                                        .bias_sums = mutable_data_of<T>(to.bias)};
  for_sum_blocks(row_kernels<T>().residual_norm_backward, args, saved.sum.size(0));
}

class ResidualNormFunction : public torch::autograd::Function<ResidualNormFunction> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& residual, const std::optional<Tensor>& maybe_output,
                               const Tensor& gain, const std::optional<Tensor>& bias, const Dropout& dropout, bool is_rms) {
    const Tensor output = maybe_output.value_or(Tensor());
    const Saved saved = forward_pass(residual, output, dropout, {gain, bias.value_or(Tensor()), is_rms}, true);
    context->save_for_backward({saved.sum, saved.mean, saved.inverse_deviation, gain});
    context->saved_data["has_output"] = output.defined();
    context->saved_data["is_rms"] = is_rms;
    keep_dropout(*context, dropout);
    context->set_materialize_grads(false);
    if (!output.defined()) return {saved.normed};
    return {saved.sum, saved.normed};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kNorm);
    const variable_list kept = context->get_saved_variables();
    const Saved saved = {kept[0], {}, kept[1], kept[2]};
    const bool has_output = context->saved_data["has_output"].toBool(), is_rms = context->saved_data["is_rms"].toBool();
    const Dropout dropout = kept_dropout(*context);
    const Tensor sum_gradient = has_output && gradients[0].defined() ? gradients[0].contiguous() : Tensor();
    const Tensor& normed = gradients[has_output ? 1 : 0];
    const Tensor normed_gradient = normed.defined() ? normed.contiguous() : at::zeros_like(saved.sum);
    const Gradients to = empty_gradients(saved.sum, has_output && dropout.rate > 0);
    with_scalar_of(saved.sum, [&](auto t) {
      run_backward<decltype(t)>(to, normed_gradient, sum_gradient, saved, dropout, {kept[3], {}, is_rms});
    });
    const Tensor output_gradient = has_output ? (to.output.defined() ? to.output : to.residual) : Tensor();
    return {to.residual, output_gradient, to.gain.sum(0), is_rms ? Tensor() : to.bias.sum(0), Tensor(), Tensor()};
  }

 private:
  static Gradients empty_gradients(const Tensor& sum, bool separate_output) {
    const Tensor sums = at::empty({2, sum_blocks(sum.size(0)), sum.size(1)}, sum.options());
    return {at::empty_like(sum), separate_output ? at::empty_like(sum) : Tensor(), sums[0], sums[1]};
  }
};

}  // namespace

ResidualNorm residual_norm(const Tensor& residual, const Tensor& output, const Dropout& dropout, const NormWeights& norm) {
  const TimedPart timed(ProfilePart::kNorm);
  if (!has_row_kernels(residual)) return reference::residual_norm(residual, output, dropout, norm);
  const Tensor x = residual.contiguous(), y = output.defined() ? output.contiguous() : output;
  if (!at::GradMode::is_enabled()) {
    const Saved result = forward_pass(x, y, dropout, norm, false);
    return {y.defined() ? result.sum : x, result.normed};
  }
  const variable_list results = ResidualNormFunction::apply(x, optional_of(y), norm.gain, optional_of(norm.bias), dropout, norm.is_rms);
  if (!y.defined()) return {x, results[0]};
  return {results[0], results[1]};
}

}  // namespace lacuna
