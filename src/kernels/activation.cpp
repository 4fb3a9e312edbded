#include "kernels/activation.h"

#include "base/profile.h"
#include "kernels/reference.h"
#include "kernels/row_tensors.h"

namespace lacuna {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor forward_pass(const Tensor& x, bool is_gelu, const Dropout& dropout) {
  Tensor result = at::empty_like(x);
  with_scalar_of(x, [&](auto t) {
    using T = decltype(t);
    const ActivationRows<T> args = {x.size(1), is_gelu, dropout.rows(x.device()), data_of<T>(x), nullptr, mutable_data_of<T>(result),
                                    nullptr};
    if constexpr (gpu::kAreBuilt && std::is_same_v<T, float>) {
      if (has_gpu_rows(x)) return on_gpu(x.device(), [&](void* stream) { return gpu::activation_forward(args, x.size(0), stream); });
    }
    for_rows(row_kernels<T>().activation_forward, args, x.size(0));
  });
  return result;
}

class ActivationFunction : public torch::autograd::Function<ActivationFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, bool is_gelu, const Dropout& dropout) {
    Tensor result = forward_pass(x, is_gelu, dropout);
    context->save_for_backward({is_gelu ? x : result});
    context->saved_data["is_gelu"] = is_gelu;
    keep_dropout(*context, dropout);
    return result;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kActivation);
    const Tensor kept = context->get_saved_variables()[0], gradient = gradients[0].contiguous(), to = at::empty_like(kept);
    const bool is_gelu = context->saved_data["is_gelu"].toBool();
    const Dropout dropout = kept_dropout(*context);
    with_scalar_of(kept, [&](auto t) {
      using T = decltype(t);
      const ActivationRows<T> args = {kept.size(1),
                                      is_gelu,
                                      dropout.rows(kept.device()),
                                      data_of<T>(kept),
                                      data_of<T>(gradient),
                                      const_cast<T*>(data_of<T>(kept)),  // read only
                                      mutable_data_of<T>(to)};
      if constexpr (gpu::kAreBuilt && std::is_same_v<T, float>) {
        if (has_gpu_rows(kept))
          return on_gpu(kept.device(), [&](void* stream) { return gpu::activation_backward(args, kept.size(0), stream); });
      }
      for_rows(row_kernels<T>().activation_backward, args, kept.size(0));
    });
    return {to, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor activation_dropout(const Tensor& x, bool is_gelu, const Dropout& dropout) {
  const TimedPart timed(ProfilePart::kActivation);
  if (!has_row_kernels(x)) return reference::activation_dropout(x, is_gelu, dropout);
  if (!at::GradMode::is_enabled()) return forward_pass(x.contiguous(), is_gelu, dropout);
  return ActivationFunction::apply(x.contiguous(), is_gelu, dropout);
}

}  // namespace lacuna
