#include "attention/attention.h"

#include "attention/core_run.h"
#include "base/profile.h"

namespace lacuna {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// A call and its moment, kept for the backward pass (without tensors: autograd keeps those).
struct SavedCall : torch::CustomClassHolder {
  AttentionCall call;
  ForwardContext context;
};

/// q, k, v and the numbers -> context.
struct CoreFunction : torch::autograd::Function<CoreFunction> {
  static Tensor forward(AutogradContext* context, at::TensorList inputs, const c10::intrusive_ptr<SavedCall>& saved) {
    context->save_for_backward(inputs.vec());
    context->saved_data["call"] = at::IValue::make_capsule(saved);
    return run_core(with_tensors(saved->call, inputs), saved->context);
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const TimedPart timed(ProfilePart::kAttention);
    const auto saved = c10::static_intrusive_pointer_cast<SavedCall>(context->saved_data["call"].toCapsule());
    const AttentionCall call = with_tensors(saved->call, context->get_saved_variables());
    AttentionGradients gradients = run_core_backward(call, saved->context, outputs[0]);
    variable_list all = {gradients.q, gradients.k, gradients.v};
    all.insert(all.end(), gradients.numbers.begin(), gradients.numbers.end());
    all.emplace_back();  // of the call
    return all;
  }

  static AttentionCall with_tensors(AttentionCall call, at::TensorList tensors) {
    call.q = tensors[0];
    call.k = tensors[1];
    call.v = tensors[2];
    call.numbers.assign(tensors.begin() + 3, tensors.end());
    return call;
  }
};

bool has_core(const AttentionCall& call) {
  const auto type = call.q.scalar_type();
  return call.q.is_cpu() && (type == at::kFloat || type == at::kDouble) && call.k.scalar_type() == type && call.v.scalar_type() == type;
}

/// The core reads rows of d_head numbers that lie side by side.
Tensor with_contiguous_rows(const Tensor& rows) {
  return rows.stride(2) == 1 || rows.size(2) == 1 ? rows : rows.contiguous();
}

}  // namespace

Tensor attention(const AttentionCall& call, const ForwardContext& context) {
  const TimedPart timed(ProfilePart::kAttention);
  if (!has_core(call)) return attention_reference(call, context);
  check_shapes(call);
  auto saved = c10::make_intrusive<SavedCall>();
  saved->call = call;
  saved->call.q = saved->call.k = saved->call.v = Tensor();
  saved->call.numbers.clear();
  saved->context = context;
  variable_list inputs = {with_contiguous_rows(call.q), with_contiguous_rows(call.k), with_contiguous_rows(call.v)};
  inputs.insert(inputs.end(), call.numbers.begin(), call.numbers.end());
  return CoreFunction::apply(at::TensorList(inputs), saved);  // autograd sees the tensors of a TensorList, not of a vector
}

bool has_fused_core(const AttentionCall& call) {
  return has_core(call);
}

}  // namespace lacuna
