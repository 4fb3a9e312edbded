#include "train/transformer_loss.h"

#include <ATen/ATen.h>

#include "kernels/bf16_product.h"
#include "kernels/packed_product.h"
#include "model/ragged_of.h"

namespace lacuna {

Precision decided_precision(Precision wanted, const std::string& device) {
  if (wanted != Precision::kAuto) return wanted;
  return !at::Device(device).is_cpu() || has_bf16_instructions() ? Precision::kBf16 : Precision::kFp32;
}

FactorPrecision factor_precision(const TrainOptions& options, const std::string& device) {
  switch (decided_precision(options.precision, device)) {
    case Precision::kBf16:
      return FactorPrecision::kBf16;
    case Precision::kBf16x3:
      return at::Device(device).is_cpu() && has_amx() ? FactorPrecision::kBf16x3 : FactorPrecision::kFp32;
    default:
      return FactorPrecision::kFp32;
  }
}

LossFunction transformer_loss(std::shared_ptr<Transformer> model, const TrainOptions& options, const std::string& device) {
  return [model = std::move(model), smoothing = options.label_smoothing, precision = factor_precision(options, device),
          where = at::Device(device)](const Batch& batch, ForwardContext context) {
    if (context.training) context.precision = precision;
    return model->loss(ragged_of(batch.src, batch.src_shape, where), ragged_of(batch.tgt, batch.tgt_shape, where), smoothing, context);
  };
}

std::vector<std::pair<std::string, Tensor>> trained_parameters(const Transformer& model) {
  std::vector<std::pair<std::string, Tensor>> parameters;
  for (const auto& parameter : model.named_parameters()) parameters.emplace_back(parameter.key(), parameter.value());
  return parameters;
}

}  // namespace lacuna
