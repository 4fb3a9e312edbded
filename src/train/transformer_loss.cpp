#include "train/transformer_loss.h"

#include <ATen/ATen.h>

namespace lacuna {
namespace {

Ragged ragged(const std::vector<TokenId>& tokens, const RaggedShapePtr& shape, const at::Device& device) {
  const at::Tensor view = at::from_blob(const_cast<TokenId*>(tokens.data()), {static_cast<int64_t>(tokens.size())}, at::kInt);
  return {view.to(at::kLong).to(device), shape};
}

}  // namespace

LossFunction transformer_loss(std::shared_ptr<Transformer> model, double label_smoothing, const std::string& device) {
  return [model = std::move(model), label_smoothing, where = at::Device(device)](const Batch& batch, const ForwardContext& context) {
    return model->loss(ragged(batch.src, batch.src_shape, where), ragged(batch.tgt, batch.tgt_shape, where), label_smoothing, context);
  };
}

std::vector<std::pair<std::string, Tensor>> trained_parameters(const Transformer& model) {
  std::vector<std::pair<std::string, Tensor>> parameters;
  for (const auto& parameter : model.named_parameters()) parameters.emplace_back(parameter.key(), parameter.value());
  return parameters;
}

}  // namespace lacuna
