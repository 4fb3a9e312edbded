#include "train/transformer_loss.h"

#include <ATen/ATen.h>

#include "kernels/bf16_product.h"
#include "model/ragged_of.h"

namespace lacuna {

Precision decided_precision(Precision wanted, const std::string& device) {
  if (wanted != Precision::kAuto) return wanted;
  return at::Device(device).is_cpu() && has_bf16_instructions() ? Precision::kBf16 : Precision::kFp32;
}

LossFunction transformer_loss(std::shared_ptr<Transformer> model, const TrainOptions& options, const std::string& device) {
  const bool in_bf16 = decided_precision(options.precision, device) == Precision::kBf16;
  return [model = std::move(model), smoothing = options.label_smoothing, in_bf16, where = at::Device(device)](const Batch& batch,
                                                                                                              ForwardContext context) {
    context.in_bf16 = in_bf16 && context.training;
    return model->loss(ragged_of(batch.src, batch.src_shape, where), ragged_of(batch.tgt, batch.tgt_shape, where), smoothing, context);
  };
}

std::vector<std::pair<std::string, Tensor>> trained_parameters(const Transformer& model) {
  std::vector<std::pair<std::string, Tensor>> parameters;
  for (const auto& parameter : model.named_parameters()) parameters.emplace_back(parameter.key(), parameter.value());
  return parameters;
}

}  // namespace lacuna
