#include "checkpoint/attention_fit.h"

#include "base/error.h"
#include "checkpoint/checkpoint.h"

namespace lacuna {
namespace {

bool is_in_attention(const std::string& parameter) {
  return parameter.find("_attention.") != std::string::npos;  // self_attention.*, cross_attention.*
}

}  // namespace

AttentionFit fit_attention(const Transformer& model, const NamedTensors& weights) {
  AttentionFit fit;
  const NamedTensors parameters = weights_of(model);
  for (const auto& [name, tensor] : weights) {
    if (is_in_attention(name) && !parameters.contains(name))
      fit.left_out.push_back(name);
    else
      fit.weights.emplace(name, tensor);
  }
  for (const auto& [name, parameter] : parameters)
    if (is_in_attention(name) && !weights.contains(name)) fit.missing.push_back(name);
  return fit;
}

std::string change_of_attention(const ModelOptions& trained, const ModelOptions& used) {
  const PlanDifference changed = difference(resolve_attention(trained), resolve_attention(used));
  return changed.first.empty() ? "" : "attention of the checkpoint: " + changed.first + "; used here: " + changed.second;
}

void require_same_units(const ModelOptions& trained, const ModelOptions& used, const std::string& place) {
  const std::string units = difference_in_units(resolve_attention(trained), resolve_attention(used));
  if (!units.empty())
    throw CheckpointError(place + ": its attention has learned numbers in other units (there and here): " + units +
                          "; expected the same: keep the checkpoint's");
}

}  // namespace lacuna
