#include "model/mask_model.h"

#include "base/log.h"

namespace lacuna {
namespace {

Tensor project(Linear& linear, const Tensor& x, const ForwardContext& context) {
  return context.is_mask_pass() ? linear.forward(x, context) : linear.constant(x, context);
}

std::shared_ptr<Linear> projection(int64_t d_model, const ParameterPath& path) {
  return std::make_shared<Linear>(d_model, d_model, path, LinearOptions{.has_bias = false});
}

}  // namespace

MaskModel::MaskModel(int64_t d_model, const ParameterPath& path)
    : query_(register_module("query", projection(d_model, path / "query"))),
      key_(register_module("key", projection(d_model, path / "key"))) {}

Tensor MaskModel::queries(const Tensor& x, const ForwardContext& context) {
  return project(*query_, x, context);
}

Tensor MaskModel::keys(const Tensor& x, const ForwardContext& context) {
  return project(*key_, x, context);
}

bool is_mask_parameter(const std::string& name) {
  return name.find("_attention.mask.") != std::string::npos;
}

void move_to(torch::nn::Module& model, const std::string& device) {
  model.to(at::Device(device));
  if (at::Device(device).is_cpu()) return;
  for (const auto& parameter : model.named_parameters()) {
    if (!is_mask_parameter(parameter.key())) continue;
    write_log_line(LogLevel::kWarning,
                   "calibrated attention has no kernels for GPUs yet: on " + device + " it goes row by row through the CPU, which is slow");
    return;
  }
}

MasksAlone::MasksAlone(const torch::nn::Module& module) {
  for (const auto& parameter : module.named_parameters()) {
    if (is_mask_parameter(parameter.key()) || !parameter.value().requires_grad()) continue;
    frozen_.push_back(parameter.value());
    frozen_.back().set_requires_grad(false);
  }
}

MasksAlone::~MasksAlone() {
  for (Tensor& parameter : frozen_) parameter.set_requires_grad(true);
}

}  // namespace lacuna
