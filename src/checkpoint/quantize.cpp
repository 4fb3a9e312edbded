#include "checkpoint/quantize.h"

#include <ATen/ATen.h>

#include <string_view>

#include "base/error.h"
#include "config/load.h"
#include "kernels/packed_weight.h"
#include "model/embedding.h"
#include "model/linear.h"

namespace lacuna {
namespace {

constexpr char kScaleSuffix[] = "_scale";

/// Returns the names of the weights that are quantized when products need no gradients.
std::vector<std::string> rounded_weights_of(const Transformer& model) {
  std::vector<std::string> names;
  for (const auto& module : model.named_modules("", /*include_self=*/false)) {
    const torch::nn::Module* one = module.value().get();
    if (dynamic_cast<const Linear*>(one) != nullptr || dynamic_cast<const EmbeddingTable*>(one) != nullptr)
      names.push_back(module.key() + ".weight");
  }
  return names;
}

/// Replaces one weight by its quantized form.
void round_weight(NamedTensors& weights, const std::string& name, Precision format) {
  Tensor& weight = weights.at(name);
  if (format == Precision::kBf16) {
    weight = weight.to(at::kBFloat16);
    return;
  }
  const QuantizedWeight quantized = lacuna::quantized(weight);
  weight = quantized.bytes;
  weights[name + kScaleSuffix] = quantized.scales;
}

Tensor floats_of(const std::string& name, const Tensor& bytes, const NamedTensors& tensors, const std::string& file) {
  const std::string place = file + ": tensor \"" + name + "\" holds bytes (I8), ", scale_name = name + kScaleSuffix;
  const auto found = tensors.find(scale_name);
  if (found == tensors.end()) throw CheckpointError(place + "but there is no \"" + scale_name + "\" with the scales of its rows");
  const Tensor& scales = found->second;
  if (bytes.dim() != 2 || scales.scalar_type() != at::kFloat || scales.dim() != 1 || scales.size(0) != bytes.size(0))
    throw CheckpointError(place + "which takes two dimensions and, in \"" + scale_name + "\", one F32 for each row");
  if (!(at::isfinite(scales) & (scales >= 0)).all().item<bool>())
    throw CheckpointError(place + "and \"" + scale_name + "\" holds what is no scale; expected numbers of 0 or more");
  return dequantized({bytes, scales});
}

}  // namespace

CheckpointContents quantized_checkpoint(const std::string& path, Precision format) {
  CheckpointContents contents = load_checkpoint_to_translate(path);
  require_unrounded(path, contents.info, "round");
  Options options = contents.options(path);
  require_room_for(options.model, sizes_of(contents.vocabularies), contents.translating_weights(), path);
  Transformer model(options.model, sizes_of(contents.vocabularies), options.seed_value());
  load_weights(model, contents.translating_weights(), path);  // throws if the weights do not fit the configuration
  contents.weights = contents.translating_weights();
  for (const std::string& name : rounded_weights_of(model)) round_weight(contents.weights, name, format);
  options.translate.precision = format == Precision::kInt8 ? Precision::kInt8 : Precision::kBf16;
  contents.config_yaml = to_yaml(options);
  contents.ema_weights.reset();
  contents.info.uses_ema = false;
  contents.info.scores.clear();
  contents.info.quantized_to = name_of(format);
  return contents;
}

NamedTensors FloatsOfFile::shapes() const {
  NamedTensors floats;
  for (const auto& [name, shape] : shapes_)
    if (const std::string bytes = bytes_of(name); bytes.empty() || bytes == name) floats.emplace(name, shape);
  return floats;
}

std::string FloatsOfFile::bytes_of(const std::string& name) const {
  const auto is_bytes = [&](const std::string& one) {
    const auto found = shapes_.find(one);
    return found != shapes_.end() && found->second.scalar_type() == at::kChar;
  };
  if (is_bytes(name)) return name;
  if (!name.ends_with(kScaleSuffix)) return "";
  const std::string scaled = name.substr(0, name.size() - std::string_view(kScaleSuffix).size());
  return is_bytes(scaled) ? scaled : "";
}

std::optional<NamedTensor> FloatsOfFile::add(NamedTensor tensor) {
  const std::string name = bytes_of(tensor.first), scales = name + kScaleSuffix;
  if (name.empty()) return tensor;
  waiting_.insert(std::move(tensor));
  if (!waiting_.contains(name) || !waiting_.contains(scales)) return {};
  NamedTensor floats = {name, floats_of(name, waiting_.at(name), waiting_, file_)};
  waiting_.erase(name);
  waiting_.erase(scales);
  return floats;
}

void FloatsOfFile::end() const {
  for (const auto& [name, bytes] : waiting_) floats_of(name, bytes, waiting_, file_);
}

void require_unrounded(const std::string& path, const CheckpointInfo& info, const std::string& purpose) {
  if (info.quantized_to.empty()) return;
  throw CheckpointError("cannot " + purpose + " " + path + ": its weights are rounded to " + info.quantized_to +
                        " (lacuna quantize), for translating alone. Use the checkpoint it was made of");
}

}  // namespace lacuna
