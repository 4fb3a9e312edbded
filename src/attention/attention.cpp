#include "attention/attention.h"

#include "attention/cpu/run.h"
#include "attention/gpu/run.h"
#include "attention/registry.h"
#include "kernels/profile.h"

namespace lacuna {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// A call and its context, kept for the backward pass (without its tensors: autograd keeps those).
struct SavedCall : torch::CustomClassHolder {
  AttentionCall call;
  ForwardContext context;
  std::shared_ptr<const cuda::BlockSchedules> schedules;  // null = the CPU's core
  cuda::KeptResults kept;
  int64_t packed_parts = 0;  // of AttentionCall::packed, 0 = it is not used
};

/// Returns rows that are contiguous over d_head, as the cores read them.
Tensor with_contiguous_rows(const Tensor& rows) {
  return rows.stride(2) == 1 || rows.size(2) == 1 ? rows : rows.contiguous();
}

/// The node of autograd: from q, k, v (or the tensor that they are packed in) and the numbers to the context.
struct CoreFunction : torch::autograd::Function<CoreFunction> {
  static variable_list inputs_of(const AttentionCall& call) {
    variable_list inputs;
    if (!call.packed.defined()) {
      inputs = {with_contiguous_rows(call.q), with_contiguous_rows(call.k), with_contiguous_rows(call.v)};
    } else if (call.packed.size(1) == 2) {
      inputs = {with_contiguous_rows(call.q), call.packed};
    } else {
      inputs = {call.packed};
    }
    inputs.insert(inputs.end(), call.numbers.begin(), call.numbers.end());
    return inputs;
  }

  static Tensor forward(AutogradContext* context, at::TensorList inputs, const c10::intrusive_ptr<SavedCall>& saved) {
    context->saved_data["call"] = at::IValue::make_capsule(saved);
    const AttentionCall call = with_tensors(*saved, inputs);
    CoreResults results;
    Tensor rows =
        saved->schedules ? cuda::run(call, saved->context, *saved->schedules, &saved->kept) : run_core(call, saved->context, &results);
    variable_list kept = inputs.vec();
    kept.insert(kept.end(), {results.kept_number, results.weights});
    context->save_for_backward(std::move(kept));
    return rows;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const TimedPart timed(ProfilePart::kAttention);
    const auto saved = c10::static_intrusive_pointer_cast<SavedCall>(context->saved_data["call"].toCapsule());
    const variable_list kept = context->get_saved_variables();
    const size_t num_inputs = kept.size() - kNumResults;
    const at::TensorList inputs(kept.data(), num_inputs), of_results(kept.data() + num_inputs, kNumResults);
    const AttentionCall call = with_tensors(*saved, inputs);
    const CoreResults given = {.kept_number = of_results[0], .weights = of_results[1]};
    AttentionGradients gradients = saved->schedules ? cuda::run_backward(call, saved->context, *saved->schedules, saved->kept, outputs[0])
                                                    : run_core_backward(call, saved->context, outputs[0], given);
    variable_list all;
    if (saved->packed_parts != 3) all.push_back(gradients.q);
    if (saved->packed_parts > 0) {
      all.push_back(gradients.packed);
    } else {
      all.insert(all.end(), {gradients.k, gradients.v});
    }
    all.insert(all.end(), gradients.numbers.begin(), gradients.numbers.end());
    all.emplace_back();  // of the call
    return all;
  }

  static constexpr size_t kNumResults = 2;  // that `forward` saves behind its inputs

  static AttentionCall with_tensors(const SavedCall& saved, at::TensorList tensors) {
    AttentionCall call = saved.call;
    const auto* next = tensors.begin();
    if (saved.packed_parts != 3) call.q = *next++;
    if (saved.packed_parts > 0) {
      call.packed = *next++;
      if (saved.packed_parts == 3) call.q = call.packed.select(1, 0);
      call.k = call.packed.select(1, saved.packed_parts - 2);
      call.v = call.packed.select(1, saved.packed_parts - 1);
    } else {
      call.k = *next++;
      call.v = *next++;
    }
    call.numbers.assign(next, tensors.end());
    return call;
  }
};

/// Returns true if q, k and v are bf16 tensors on the CPU. The core takes most of these, and the others as floats.
bool is_stored_in_bf16(const AttentionCall& call) {
  return call.q.is_cpu() && call.q.scalar_type() == at::kBFloat16 && call.k.scalar_type() == at::kBFloat16 &&
         call.v.scalar_type() == at::kBFloat16;
}

Tensor through_float(AttentionCall call, const ForwardContext& context) {
  call.packed = Tensor();
  for (Tensor* rows : {&call.q, &call.k, &call.v}) *rows = rows->to(at::kFloat);
  return attention(call, context).to(at::kBFloat16);
}

Tensor without_gradients(AttentionCall call, const ForwardContext& context, bool has_kernels) {
  for (Tensor* rows : {&call.q, &call.k, &call.v}) *rows = with_contiguous_rows(*rows);
  return has_kernels ? cuda::run(call, context, *cuda::schedule(call, context)) : run_core(call, context);
}

}  // namespace

Tensor attention(const AttentionCall& call, const ForwardContext& context) {
  const TimedPart timed(ProfilePart::kAttention);
  check_shapes(call);
  const bool has_kernels = cuda::has_kernels(call);
  const bool has_core = has_kernels || core_takes(call);
  if (!has_core && is_stored_in_bf16(call)) return through_float(call, context);
  if (!has_core) return attention_reference(call, context);
  if (!at::GradMode::is_enabled()) return without_gradients(call, context, has_kernels);
  auto saved = c10::make_intrusive<SavedCall>();
  saved->call = call;
  saved->call.q = saved->call.k = saved->call.v = saved->call.packed = Tensor();
  saved->call.numbers.clear();
  saved->context = context;
  if (has_kernels) saved->schedules = cuda::schedule(call, context);
  if (call.packed.defined()) saved->packed_parts = call.packed.size(1);
  const variable_list inputs = CoreFunction::inputs_of(call);
  return CoreFunction::apply(at::TensorList(inputs), saved);  // autograd sees the tensors of a TensorList, not of a vector
}

void prepare_attention(const AttentionCall& call, const ForwardContext& context, Upload& upload) {
  if (cuda::has_kernels(call)) cuda::prepare(call, context, upload);
}

bool has_fused_core(const AttentionCall& call) {
  const bool goes_through_float = is_stored_in_bf16(call) && call.v.size(2) == call.q.size(2);
  return core_takes(call) || goes_through_float || cuda::has_kernels(call);
}

}  // namespace lacuna
