#include "kernels/calibration.h"

#include "kernels/profile.h"
#include "kernels/row_tensors.h"

namespace lacuna {
namespace {

using gpu::CalibrationRows;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// What a call does beside its tensors.
struct Settings {
  CalibrationRows::Way way;
  double share = 0, factor = 0;
};

int64_t rows_of(const Tensor& weights) {
  return weights.size(0) * weights.size(1);
}

/// The arguments without results; `gate_scores` and `even` may be undefined.
CalibrationRows arguments(const Settings& settings, const Tensor& base, const Tensor& mask_scores, const Tensor& gate_scores,
                          const Tensor& even) {
  return {.columns = base.size(2),
          .way = settings.way,
          .base = data_of<float>(base),
          .mask_scores = data_of<float>(mask_scores),
          .gate_scores = data_of<float>(gate_scores),
          .even = data_of<float>(even),
          .share = static_cast<float>(settings.share),
          .factor = static_cast<float>(settings.factor)};
}

class CalibrationFunction : public torch::autograd::Function<CalibrationFunction> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& base, const Tensor& mask_scores,
                               const std::optional<Tensor>& maybe_gate, const std::optional<Tensor>& maybe_even, const Settings& settings) {
    const Tensor gate_scores = maybe_gate.value_or(Tensor()), even = maybe_even.value_or(Tensor());
    const bool perturbs = settings.way == CalibrationRows::Way::kPerturbed;
    const auto of_rows = [&] { return perturbs ? at::empty({base.size(0), base.size(1)}, base.options()) : Tensor(); };
    const Tensor weights = at::empty_like(base), penalty = of_rows(), mean_mask = of_rows();
    CalibrationRows args = arguments(settings, base, mask_scores, gate_scores, even);
    args.weights = mutable_data_of<float>(weights);
    args.penalty = mutable_data_of<float>(penalty);
    args.mean_mask = mutable_data_of<float>(mean_mask);
    with_gpu_kernels(base,
                     [&](const gpu::Kernels& kernels, void* stream) { return kernels.calibration_forward(args, rows_of(base), stream); });
    const bool keeps_weights = settings.way == CalibrationRows::Way::kFixed;
    context->save_for_backward({base, mask_scores, gate_scores, even, keeps_weights ? weights : Tensor()});
    context->saved_data["way"] = static_cast<int64_t>(settings.way);
    context->saved_data["share"] = settings.share;
    context->saved_data["factor"] = settings.factor;
    context->set_materialize_grads(false);
    if (!perturbs) return {weights};
    context->mark_non_differentiable({mean_mask});
    return {weights, penalty, mean_mask};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kAttention);
    const variable_list kept = context->get_saved_variables();
    const Tensor &base = kept[0], &mask_scores = kept[1], &gate_scores = kept[2];
    const Settings settings = {static_cast<CalibrationRows::Way>(context->saved_data["way"].toInt()),
                               context->saved_data["share"].toDouble(), context->saved_data["factor"].toDouble()};
    const bool perturbs = settings.way == CalibrationRows::Way::kPerturbed;
    const Tensor gradient = gradients[0].defined() ? gradients[0].contiguous() : at::zeros_like(base);
    const Tensor of_penalty = perturbs && gradients[1].defined() ? gradients[1].contiguous() : Tensor();
    const Tensor of_base = at::empty_like(base), of_mask = perturbs ? at::empty_like(base) : Tensor(),
                 of_gate = gate_scores.defined() ? at::empty_like(gate_scores) : Tensor();
    CalibrationRows args = arguments(settings, base, mask_scores, gate_scores, kept[3]);
    args.weights = const_cast<float*>(data_of<float>(kept[4]));  // read only
    args.weights_gradient = data_of<float>(gradient);
    args.penalty_gradient = data_of<float>(of_penalty);
    args.base_gradient = mutable_data_of<float>(of_base);
    args.mask_gradient = mutable_data_of<float>(of_mask);
    args.gate_gradient = mutable_data_of<float>(of_gate);
    with_gpu_kernels(base,
                     [&](const gpu::Kernels& kernels, void* stream) { return kernels.calibration_backward(args, rows_of(base), stream); });
    return {of_base, of_mask, of_gate, Tensor(), Tensor()};
  }
};

variable_list by_kernel(const MaskedWeights& masked, const Tensor& gate_scores, const Tensor& even, const Settings& settings) {
  const auto contiguous = [](const Tensor& x) { return x.defined() ? std::optional<Tensor>(x.contiguous()) : std::nullopt; };
  return CalibrationFunction::apply(masked.base.contiguous(), masked.mask_scores.contiguous(), contiguous(gate_scores), contiguous(even),
                                    settings);
}

/// For plain operations: in double where there are no gradients. Then a row, rounded to float, does not depend on where vectors of a whole
/// tensor begin.
Tensor in_working_type(const Tensor& x) {
  return at::GradMode::is_enabled() ? x : x.to(at::kDouble);
}

/// exp(1 - m)
Tensor boost_of(const Tensor& mask_scores) {
  return (1 - in_working_type(mask_scores).sigmoid()).exp();
}

/// The square root, with gradient 0 where x is 0.
Tensor safe_sqrt(const Tensor& x) {
  const Tensor is_zero = x.eq(0);
  return at::where(is_zero, at::zeros_like(x), at::where(is_zero, at::ones_like(x), x).sqrt());
}

}  // namespace

Tensor gated_weights(const MaskedWeights& masked, const Tensor& gate_scores) {
  const TimedPart timed(ProfilePart::kAttention);
  if (has_gpu_rows(masked.base))
    return by_kernel({masked.base, masked.mask_scores.detach()}, gate_scores, {}, {CalibrationRows::Way::kShared})[0];
  const Tensor boost = boost_of(masked.mask_scores.detach()), share = gate_scores.to(boost.scalar_type()).sigmoid().unsqueeze(-1);
  return in_working_type(masked.base) * at::addcmul(boost, share, 1 - boost);
}

Tensor annealed_weights(const MaskedWeights& masked, double share) {
  const TimedPart timed(ProfilePart::kAttention);
  if (has_gpu_rows(masked.base))
    return by_kernel({masked.base, masked.mask_scores.detach()}, {}, {}, {CalibrationRows::Way::kShared, share})[0];
  return in_working_type(masked.base) * (share + (1 - share) * boost_of(masked.mask_scores.detach()));
}

Tensor fixed_weights(const MaskedWeights& masked, const Tensor& even, double factor) {
  const TimedPart timed(ProfilePart::kAttention);
  if (has_gpu_rows(masked.base))
    return by_kernel({masked.base, masked.mask_scores.detach()}, {}, even, {CalibrationRows::Way::kFixed, 0, factor})[0];
  const Tensor rows = in_working_type(masked.base) * (1 + factor * boost_of(masked.mask_scores.detach()));
  const Tensor exponentials = (rows - rows.detach().amax(-1, true)).exp() * even.gt(0).to(rows.scalar_type());
  return exponentials / exponentials.sum(-1, true).clamp_min(1e-30);
}

PerturbedWeights perturbed_weights(const MaskedWeights& masked, const Tensor& even, double factor) {
  const TimedPart timed(ProfilePart::kAttention);
  if (has_gpu_rows(masked.base)) {
    const variable_list results = by_kernel(masked, {}, even, {CalibrationRows::Way::kPerturbed, 0, factor});
    return {results[0], results[1], results[2]};
  }
  const Tensor base = in_working_type(masked.base), mask = in_working_type(masked.mask_scores).sigmoid();
  const auto mean_of = [&](const Tensor& rows) { return (rows * even).sum(-1, /*keepdim=*/true); };
  const Tensor mean = mean_of(base);
  return {mean + mask * (base - mean), factor * safe_sqrt(mean_of((1 - mask).square())).squeeze(-1), mean_of(mask.detach()).squeeze(-1)};
}

}  // namespace lacuna
