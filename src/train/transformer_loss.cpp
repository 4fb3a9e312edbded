#include "train/transformer_loss.h"

#include <ATen/ATen.h>

#include "base/ragged.h"
#include "model/precision.h"

namespace lacuna {

LossFunction transformer_loss(std::shared_ptr<Transformer> model, const TrainOptions& options, const std::string& device) {
  return [model = std::move(model), smoothing = options.label_smoothing, precision = factor_precision(options.precision, device),
          where = at::Device(device)](const Batch& batch, ForwardContext context) {
    if (context.training) context.precision = precision;
    return model->loss(ragged_of(batch.src, batch.src_shape, where), ragged_of(batch.tgt, batch.tgt_shape, where), smoothing, context);
  };
}

std::vector<ParameterGroup> trained_parameters(const Transformer& model) {
  const AuxiliaryLoss* const auxiliary = model.auxiliary_loss();
  std::vector<ParameterGroup> groups = {{"main", {}}};
  if (auxiliary != nullptr) groups.push_back({"auxiliary", {}});
  for (const auto& parameter : model.named_parameters()) {
    const bool is_auxiliary = auxiliary != nullptr && auxiliary->trains(parameter.key());
    groups[is_auxiliary ? 1 : 0].parameters.emplace_back(parameter.key(), parameter.value());
  }
  return groups;
}

}  // namespace lacuna
