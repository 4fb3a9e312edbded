#include "kernels/gated_activation.h"

#include "kernels/profile.h"
#include "kernels/reference.h"
#include "kernels/row_tensors.h"

namespace lacuna {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class T>
void swiglu_rows(const T* x, int64_t rows, int64_t columns, const DropoutRows& dropout, T* to) {
  const SwigluRows<T> args = {
      .columns = columns, .dropout = dropout, .input = x, .result = to, .gradient = nullptr, .input_gradient = nullptr};
  for_rows(row_kernels<T>().swiglu_forward, args, rows);
}

Tensor swiglu_forward(const Tensor& x, const Dropout& dropout) {
  Tensor result = at::empty({x.size(0), x.size(1) / 2}, x.options().requires_grad(false));
  with_scalar_of(x, [&](auto t) {
    using T = decltype(t);
    swiglu_rows(data_of<T>(x), x.size(0), result.size(1), dropout.rows(), mutable_data_of<T>(result));
  });
  return result;
}

class SwigluFunction : public torch::autograd::Function<SwigluFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Dropout& dropout) {
    context->save_for_backward({x});
    keep_dropout(*context, dropout);
    return swiglu_forward(x, dropout);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kActivation);
    const Tensor x = context->get_saved_variables()[0], gradient = gradients[0].contiguous(), to = at::empty_like(x);
    const Dropout dropout = kept_dropout(*context);
    with_scalar_of(x, [&](auto t) {
      using T = decltype(t);
      const SwigluRows<T> args = {.columns = gradient.size(1),
                                  .dropout = dropout.rows(),
                                  .input = data_of<T>(x),
                                  .result = nullptr,
                                  .gradient = data_of<T>(gradient),
                                  .input_gradient = mutable_data_of<T>(to)};
      for_rows(row_kernels<T>().swiglu_backward, args, x.size(0));
    });
    return {to, Tensor()};
  }
};

}  // namespace

Tensor swiglu_dropout(const Tensor& x, const Dropout& dropout) {
  const TimedPart timed(ProfilePart::kActivation);
  if (!has_row_loops(x)) return reference::swiglu_dropout(x, dropout);
  if (!at::GradMode::is_enabled()) return swiglu_forward(x.contiguous(), dropout);
  return SwigluFunction::apply(x.contiguous(), dropout);
}

void swiglu(const float* x, int64_t rows, int64_t d_ff, float* to) {
  const TimedPart timed(ProfilePart::kActivation);
  swiglu_rows(x, rows, d_ff, {}, to);
}

}  // namespace lacuna
