#include "model/decoder.h"

#include "model/residual_stream.h"

namespace lacuna {
namespace {

DropoutSite site_of(int layer, DropoutPlace place) {
  return {Stack::kDecoder, layer, place};
}

}  // namespace

DecoderLayer::DecoderLayer(const ModelOptions& options, const AttentionPlan& attention, int layer, const ParameterPath& path) {
  const auto norm = [&] { return std::make_shared<Norm>(options.norm_type, options.d_model); };
  const AttentionPlace self = {AttentionSite::kDecoderSelf, layer, attention.decoder_self[static_cast<size_t>(layer)]};
  const AttentionPlace cross = {AttentionSite::kCross, layer, attention.cross[static_cast<size_t>(layer)]};
  const DropoutSite activation = {Stack::kDecoder, layer, DropoutPlace::kActivation};
  self_attention = register_module("self_attention", std::make_shared<SelfAttention>(options, self, path / "self_attention"));
  self_attention_norm = register_module("self_attention_norm", norm());
  cross_attention = register_module("cross_attention", std::make_shared<CrossAttention>(options, cross, path / "cross_attention"));
  cross_attention_norm = register_module("cross_attention_norm", norm());
  feed_forward =
      register_module("feed_forward", std::make_shared<FeedForward>(options, options.decoder_ff(), activation, path / "feed_forward"));
  feed_forward_norm = register_module("feed_forward_norm", norm());
}

Decoder::Decoder(const ModelOptions& options, const AttentionPlan& attention, const ParameterPath& path)
    : norm_place_(options.norm), dropout_(options.dropout) {
  const auto list = register_module("layers", std::make_shared<torch::nn::Module>());
  for (int i = 0; i < options.decoder_layers; ++i) {
    const auto layer = std::make_shared<DecoderLayer>(options, attention, i, path / "layers" / std::to_string(i));
    list->register_module(std::to_string(i), layer);
    layers_.push_back(layer);
    norms_.insert(norms_.end(), {layer->self_attention_norm, layer->cross_attention_norm, layer->feed_forward_norm});
  }
  if (norm_place_ == NormPlace::kPre) norms_.push_back(register_module("norm", std::make_shared<Norm>(options.norm_type, options.d_model)));
}

Ragged Decoder::forward(const Ragged& embedded, const Ragged& memory, const ForwardContext& context) {
  const auto keys = std::make_shared<const KeyRange>(KeyRange::of(*memory.shape));
  ResidualStream stream(norm_place_, norms_, embedded, dropout_, context);
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
    DecoderLayer& layer = *layers_[static_cast<size_t>(i)];
    stream.take(layer.self_attention->forward(stream.values(), stream.next_end(site_of(i, DropoutPlace::kSelfAttention)), context));
    const MemoryKeys memory_keys = layer.cross_attention->read(memory, context);
    const ResidualEnd cross_end = stream.next_end(site_of(i, DropoutPlace::kCrossAttention));
    stream.take(layer.cross_attention->forward(stream.values(), memory_keys, keys, cross_end, context));
    stream.take(layer.feed_forward->forward(stream.values(), stream.next_end(site_of(i, DropoutPlace::kFeedForward)), context));
  }
  return stream.values();
}

std::unique_ptr<SlotCache> Decoder::start(const Ragged& memory) {
  std::vector<MemoryKeys> memory_keys;
  for (const auto& layer : layers_) memory_keys.push_back(layer->cross_attention->read(memory, {}));
  auto cache = std::make_unique<SlotCache>(memory.shape, std::move(memory_keys));
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i)
    cache->buffer(i) = layers_[static_cast<size_t>(i)]->self_attention->new_buffer();
  return cache;
}

Tensor Decoder::step(const Tensor& embedded, SlotCache& cache, const StepKeys& keys, const ForwardContext& context) {
  const auto memory_queries = cache.memory_queries();
  const auto memory_keys = cache.memory_keys();
  ResidualStream stream(norm_place_, norms_, {embedded, keys.queries}, dropout_, context);
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
    DecoderLayer& layer = *layers_[static_cast<size_t>(i)];
    const ResidualEnd self_end = stream.next_end(site_of(i, DropoutPlace::kSelfAttention));
    stream.take(layer.self_attention->step(stream.values().values, cache.buffer(i), keys, self_end, context));
    const NormedRows queries = {{stream.values().values, memory_queries}};
    const ResidualEnd cross_end = stream.next_end(site_of(i, DropoutPlace::kCrossAttention));
    stream.take(layer.cross_attention->forward(queries, cache.memory(i), memory_keys, cross_end, context));
    stream.take(layer.feed_forward->forward(stream.values(), stream.next_end(site_of(i, DropoutPlace::kFeedForward)), context));
  }
  return stream.values().values;
}

}  // namespace lacuna
