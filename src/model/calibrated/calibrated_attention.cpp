#include "model/calibrated/calibrated_attention.h"

#include <ATen/ATen.h>

#include <cmath>

#include "attention/call.h"
#include "attention/dense_weights.h"
#include "attention/registry.h"

namespace lacuna {
namespace {

using Combine = CalibratedOptions::Combine;

/// Shows a probe every row of a call.
void show(const AttentionCall& call, AttentionProbe& probe, const Tensor& weights, const MaskedWeights& masked) {
  const auto on_cpu = [](const Tensor& rows) { return rows.detach().to(at::kCPU, at::kFloat).contiguous(); };
  const Tensor all[] = {on_cpu(weights), on_cpu(masked.base), on_cpu(masked.mask_scores.to(at::kDouble).sigmoid())};
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
  const MaskedWeights masked = {dense_weights(call, context), mask_scores(call, x, mask_keys, context)};
  const Tensor weights = pass_ != nullptr ? perturbed(masked, even_weights(call, context)) : combined(call, masked, context);
  if (is_probed(call, context)) show(call, *context.probe, weights, masked);
  return dense_context(call, weights.to(call.v.scalar_type()), *identity_, context);
}

Tensor CalibratedAttention::mask_scores(const AttentionCall& call, const Tensor& x, const Tensor& mask_keys,
                                        const ForwardContext& context) {
  AttentionCall scores = call;
  scores.type = identity_.get();
  scores.numbers.clear();
  scores.q = project(*query_, x, context).view(call.q.sizes());
  scores.k = mask_keys;
  return dense_weights(scores, context);
}

Tensor CalibratedAttention::even_weights(const AttentionCall& call, const ForwardContext& context) const {
  const at::NoGradGuard no_gradients;
  AttentionCall even = call;
  even.type = softmax_.get();
  even.numbers.clear();
  even.q = at::zeros_like(call.q);
  return dense_weights(even, context);
}

Tensor CalibratedAttention::perturbed(const MaskedWeights& masked, const Tensor& even) {
  PerturbedWeights perturbed = perturbed_weights(masked, even, options_.mask_penalty);
  pass_->penalties.push_back(std::move(perturbed.penalty));
  pass_->mean_masks.push_back(std::move(perturbed.mean_mask));
  return perturbed.weights;
}

Tensor CalibratedAttention::combined(const AttentionCall& call, const MaskedWeights& masked, const ForwardContext& context) {
  switch (options_.combine) {
    case Combine::kFixed:
      return fixed_weights(masked, even_weights(call, context), options_.lambda);
    case Combine::kAnneal:
      return annealed_weights(masked, std::exp(-static_cast<double>(context.step) / static_cast<double>(options_.anneal_steps)));
    case Combine::kGate:
      break;
  }
  return gated_weights(masked, gate_scores(call, context));
}

Tensor CalibratedAttention::gate_scores(const AttentionCall& call, const ForwardContext& context) {
  Tensor scores = gate_->forward(call.q.reshape({call.q.size(0), -1}).contiguous(), context);
  if (is_probed(call, context)) {
    const Tensor seen = scores.detach().to(at::kCPU, at::kDouble).sigmoid().mean(0);
    context.probe->see_number(call.layer, call.site, "gate", {seen.const_data_ptr<double>(), static_cast<size_t>(num_heads_)});
  }
  return scores;
}

}  // namespace lacuna
