#include "model/calibrated/calibrated_attention.h"

#include <ATen/ATen.h>

#include <cmath>

#include "attention/call.h"
#include "attention/dense_weights.h"
#include "attention/registry.h"

namespace lacuna {
namespace {

using Combine = CalibratedOptions::Combine;

/// The square root, with gradient 0 where x is 0.
Tensor safe_sqrt(const Tensor& x) {
  const Tensor is_zero = x.eq(0);
  return at::where(is_zero, at::zeros_like(x), at::where(is_zero, at::ones_like(x), x).sqrt());
}

/// Softmax over the elements where `even` is not 0; rows without such are 0.
Tensor softmax_of_visible(const Tensor& rows, const Tensor& even) {
  const Tensor exponentials = (rows - rows.detach().amax(-1, true)).exp() * even.gt(0).to(rows.scalar_type());
  return exponentials / exponentials.sum(-1, true).clamp_min(1e-30);
}

/// In double where there are no gradients: then a row, rounded to float, does not depend on where vectors of a whole
/// tensor begin.
Tensor in_working_type(const Tensor& x) {
  return at::GradMode::is_enabled() ? x : x.to(at::kDouble);
}

/// Shows a probe every row of a call.
void show(const AttentionCall& call, AttentionProbe& probe, const Tensor& weights, const Tensor& base, const Tensor& mask) {
  const auto on_cpu = [](const Tensor& rows) { return rows.detach().to(at::kCPU, at::kFloat).contiguous(); };
  const Tensor all[] = {on_cpu(weights), on_cpu(base), on_cpu(mask)};
  const int64_t heads = weights.size(1), width = weights.size(2);
  std::vector<KeySegment> segments;
  std::vector<int32_t> positions;
  std::vector<float> rows[3];
  for (int64_t b = 0; b < call.queries->num_sentences(); ++b)
    for (int32_t i = 0; i < call.queries->length(b); ++i)
      for (int64_t head = 0; head < heads; ++head) {
        const int32_t query = query_position(call, b, i);
        visible_keys(call, b, head, query, segments);
        positions.clear();
        append_positions(segments, positions);
        if (positions.empty()) continue;
        const int64_t first = ((call.queries->begin(b) + i) * heads + head) * width;
        for (size_t which = 0; which < 3; ++which) {
          rows[which].clear();
          for (const int32_t j : positions) rows[which].push_back(all[which].const_data_ptr<float>()[first + j]);
        }
        probe.see(call.layer, call.site, static_cast<int>(head), b, query, rows[0], positions);
        probe.see_original(call.layer, call.site, static_cast<int>(head), b, query, rows[1], rows[2], positions);
      }
}

}  // namespace

std::shared_ptr<CalibratedAttention> CalibratedAttention::create(torch::nn::Module& parent, std::shared_ptr<const AttentionType> type,
                                                                 const ModelOptions& options, const ParameterPath& path) {
  if (type->calibrated() == nullptr) return nullptr;
  auto made = parent.register_module("mask", std::make_shared<CalibratedAttention>(std::move(type), options, path));
  if (made->gate_) parent.register_module("gate", made->gate_);
  return made;
}

CalibratedAttention::CalibratedAttention(std::shared_ptr<const AttentionType> type, const ModelOptions& options, const ParameterPath& path)
    : type_(std::move(type)),
      identity_(identity_like(*type_, options.num_heads)),
      softmax_(softmax_like(*type_, options.num_heads)),
      options_(*type_->calibrated()),
      num_heads_(options.num_heads) {
  const auto projection = [&](const char* name) {
    return register_module(
        name, std::make_shared<Linear>(options.d_model, options.d_model, path / "mask" / name, LinearOptions{.has_bias = false}));
  };
  query_ = projection("query");
  key_ = projection("key");
  if (options_.combine == Combine::kGate) gate_ = std::make_shared<Linear>(options.d_model, num_heads_, path / "gate");
}

Tensor CalibratedAttention::project(Linear& linear, const Tensor& x, const ForwardContext& context) const {
  return pass_ != nullptr ? linear.forward(x, context) : linear.constant(x, context);
}

Tensor CalibratedAttention::keys(const Tensor& x, const ForwardContext& context) {
  return project(*key_, x, context);
}

Tensor CalibratedAttention::forward(const AttentionCall& call, const Tensor& x, const Tensor& mask_keys, const ForwardContext& context) {
  const Tensor base = in_working_type(dense_weights(call, context)), mask = mask_of(call, x, mask_keys, context);
  const Tensor weights = pass_ != nullptr ? perturbed(base, mask, even_weights(call, context)) : combined(call, base, mask, context);
  if (is_probed(call, context)) show(call, *context.probe, weights, base, mask);
  return dense_context(call, weights.to(call.v.scalar_type()), *identity_, context);
}

Tensor CalibratedAttention::mask_of(const AttentionCall& call, const Tensor& x, const Tensor& mask_keys, const ForwardContext& context) {
  AttentionCall scores = call;
  scores.type = identity_.get();
  scores.numbers.clear();
  scores.q = project(*query_, x, context).view(call.q.sizes());
  scores.k = mask_keys;
  return in_working_type(dense_weights(scores, context)).sigmoid();
}

Tensor CalibratedAttention::even_weights(const AttentionCall& call, const ForwardContext& context) const {
  const at::NoGradGuard no_gradients;
  AttentionCall even = call;
  even.type = softmax_.get();
  even.numbers.clear();
  even.q = at::zeros_like(call.q);
  return dense_weights(even, context);
}

Tensor CalibratedAttention::perturbed(const Tensor& base, const Tensor& mask, const Tensor& even) {
  const auto mean_of = [&](const Tensor& rows) { return (rows * even).sum(-1, /*keepdim=*/true); };
  const Tensor distance = safe_sqrt(mean_of((1 - mask).square())), mean = mean_of(mask.detach());
  const Tensor penalty = distance.mean(at::kDouble) * options_.mask_penalty, of_mask = mean.mean(at::kDouble);
  pass_->penalty = pass_->layers == 0 ? penalty : pass_->penalty + penalty;
  pass_->mean = pass_->layers == 0 ? of_mask : pass_->mean + of_mask;
  ++pass_->layers;
  const Tensor mean_weight = mean_of(base);
  return mean_weight + mask * (base - mean_weight);
}

Tensor CalibratedAttention::combined(const AttentionCall& call, const Tensor& base, const Tensor& mask, const ForwardContext& context) {
  const Tensor boost = (1 - mask).exp();  // a_c / a
  switch (options_.combine) {
    case Combine::kFixed:
      return softmax_of_visible(base * (1 + options_.lambda * boost), even_weights(call, context));
    case Combine::kAnneal: {
      const double gamma = std::exp(-static_cast<double>(context.step) / static_cast<double>(options_.anneal_steps));
      return base * (gamma + (1 - gamma) * boost);
    }
    case Combine::kGate:
      break;
  }
  return base * at::addcmul(boost, gate_of(call, boost, context), 1 - boost);
}

Tensor CalibratedAttention::gate_of(const AttentionCall& call, const Tensor& like, const ForwardContext& context) {
  const Tensor scores = gate_->forward(call.q.reshape({call.q.size(0), -1}).contiguous(), context);
  const Tensor gate = scores.to(like.scalar_type()).sigmoid();
  if (is_probed(call, context)) {
    const Tensor seen = gate.detach().to(at::kCPU, at::kDouble).mean(0);
    context.probe->see_number(call.layer, call.site, "gate", {seen.const_data_ptr<double>(), static_cast<size_t>(num_heads_)});
  }
  return gate.unsqueeze(-1);
}

}  // namespace lacuna
