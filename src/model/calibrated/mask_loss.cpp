#include "attention/registry.h"
#include "model/calibrated/calibrated_attention.h"

namespace lacuna {
namespace {

/// While it lives, calibrated layers are in the mask pass, and only mask models' parameters require gradients.
class MaskPassScope {
 public:
  MaskPassScope(torch::nn::Module& model, MaskPass& pass) {
    for (const auto& module : model.modules(/*include_self=*/false))
      if (const auto layer = std::dynamic_pointer_cast<CalibratedAttention>(module)) layers_.push_back(layer);
    for (const auto& layer : layers_) layer->set_pass(&pass);
    for (const auto& parameter : model.named_parameters()) {
      if (is_mask_parameter(parameter.key()) || !parameter.value().requires_grad()) continue;
      frozen_.push_back(parameter.value());
      frozen_.back().set_requires_grad(false);
    }
  }
  ~MaskPassScope() {
    for (const auto& layer : layers_) layer->set_pass(nullptr);
    for (Tensor& parameter : frozen_) parameter.set_requires_grad(true);
  }
  MaskPassScope(const MaskPassScope&) = delete;
  MaskPassScope& operator=(const MaskPassScope&) = delete;

 private:
  std::vector<std::shared_ptr<CalibratedAttention>> layers_;
  std::vector<Tensor> frozen_;
};

class MaskLoss : public AuxiliaryLoss {
 public:
  MaskLoss(const CalibratedOptions& options, torch::nn::Module& model) : options_(options), model_(model) {}

  bool trains(const std::string& parameter) const override { return is_mask_parameter(parameter); }
  bool is_due(int64_t step) const override { return step % options_.mask_every == 0; }

  AuxiliarySums sums(const DecoderLoss& decoder_loss, int64_t num_tokens, const ForwardContext& given) override {
    MaskPass pass;
    const MaskPassScope scope(model_, pass);
    ForwardContext context = given;
    context.probe = nullptr;
    const Tensor loss = decoder_loss(context);
    const auto mean_of = [](const std::vector<Tensor>& of_layers) { return at::stack(of_layers).mean(at::kDouble); };
    const auto tokens = static_cast<double>(num_tokens);
    const Tensor objective = (mean_of(pass.penalties) - (loss / tokens).clamp_max(options_.mask_loss_cap)) * tokens;
    return {objective,
            {{"mask_loss", objective.detach()}, {"mask_perturbed_loss", loss.detach()}, {"mask", mean_of(pass.mean_masks) * tokens}}};
  }

 private:
  CalibratedOptions options_;
  torch::nn::Module& model_;
};

}  // namespace

std::unique_ptr<AuxiliaryLoss> make_mask_loss(const AttentionPlan& plan, torch::nn::Module& model) {
  for (const auto* site : {&plan.decoder_self, &plan.cross})
    for (const AttentionChoice& choice : *site)
      if (const CalibratedOptions* options = choice.type->calibrated()) return std::make_unique<MaskLoss>(*options, model);
  return nullptr;
}

bool is_mask_parameter(const std::string& name) {
  return name.find("_attention.mask.") != std::string::npos;
}

}  // namespace lacuna
