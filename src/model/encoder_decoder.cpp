#include "model/encoder_decoder.h"

#include <utility>

#include "kernels/rounded_copies.h"

namespace lacuna {

TransformerLayer::TransformerLayer(const ModelOptions& options, const AttentionPlan& attention, Stack stack, int index,
                                   const ParameterPath& path) {
  const bool is_decoder = stack == Stack::kDecoder;
  const auto place = static_cast<size_t>(index);
  const auto add_norm = [&](const char* name) { norms.push_back(register_module(name, std::make_shared<Norm>(options))); };
  const AttentionPlace self = is_decoder ? AttentionPlace{AttentionSite::kDecoderSelf, index, attention.decoder_self[place]}
                                         : AttentionPlace{AttentionSite::kEncoderSelf, index, attention.encoder_self[place]};
  self_attention = register_module("self_attention", std::make_shared<SelfAttention>(options, self, path / "self_attention"));
  add_norm("self_attention_norm");
  if (is_decoder) {
    const AttentionPlace cross = {AttentionSite::kCross, index, attention.cross[place]};
    cross_attention = register_module("cross_attention", std::make_shared<CrossAttention>(options, cross, path / "cross_attention"));
    add_norm("cross_attention_norm");
  }
  const DropoutSite activation = {stack, index, DropoutPlace::kActivation};
  const int64_t d_ff = is_decoder ? options.decoder_ff() : options.encoder_ff();
  feed_forward = register_module("feed_forward", std::make_shared<FeedForward>(options, d_ff, activation, path / "feed_forward"));
  add_norm("feed_forward_norm");
}

LayerStack::LayerStack(const ModelOptions& options, const AttentionPlan& attention, Stack stack, const ParameterPath& path)
    : stack_(stack), norm_place_(options.norm), dropout_(options.dropout) {
  const auto list = register_module("layers", std::make_shared<torch::nn::Module>());
  const int64_t count = stack == Stack::kDecoder ? options.decoder_layers : options.encoder_layers;
  for (int i = 0; i < count; ++i) {
    const std::string name = std::to_string(i);
    layers_.push_back(
        list->register_module(name, std::make_shared<TransformerLayer>(options, attention, stack, i, path / "layers" / name)));
    norms_.insert(norms_.end(), layers_.back()->norms.begin(), layers_.back()->norms.end());
  }
  if (norm_place_ == NormPlace::kPre) norms_.push_back(register_module("norm", std::make_shared<Norm>(options)));
}

Ragged Encoder::forward(const Ragged& embedded, const ForwardContext& context) {
  ResidualStream stream = stream_of(embedded, context);
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
    TransformerLayer& layer = *layers_[static_cast<size_t>(i)];
    stream.take(layer.self_attention->forward(stream.values(), stream.next_end(site(i, DropoutPlace::kSelfAttention)), context));
    stream.take(layer.feed_forward->forward(stream.values(), stream.next_end(site(i, DropoutPlace::kFeedForward)), context));
  }
  return stream.values();
}

Ragged Decoder::forward(const Ragged& embedded, const Ragged& memory, const ForwardContext& context) {
  const auto keys = std::make_shared<const KeyRange>(KeyRange::of(*memory.shape));
  RoundedCopies rounded;  // each layer multiplies the memory
  if (context.precision == Precision::kBf16 && at::GradMode::is_enabled()) rounded.round(memory.values);
  ResidualStream stream = stream_of(embedded, context);
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
    TransformerLayer& layer = *layers_[static_cast<size_t>(i)];
    stream.take(layer.self_attention->forward(stream.values(), stream.next_end(site(i, DropoutPlace::kSelfAttention)), context));
    const MemoryKeys memory_keys = layer.cross_attention->read(memory, context);
    const ResidualEnd cross_end = stream.next_end(site(i, DropoutPlace::kCrossAttention));
    stream.take(layer.cross_attention->forward(stream.values(), memory_keys, keys, cross_end, context));
    stream.take(layer.feed_forward->forward(stream.values(), stream.next_end(site(i, DropoutPlace::kFeedForward)), context));
  }
  return stream.values();
}

std::unique_ptr<SlotCache> Decoder::start(const Ragged& memory) {
  std::vector<MemoryKeys> memory_keys;
  std::vector<Tensor> buffers;
  for (const auto& layer : layers_) {
    memory_keys.push_back(layer->cross_attention->read(memory, {}));
    buffers.push_back(layer->self_attention->new_buffer(memory_keys.back().keys_values));
  }
  auto cache = std::make_unique<SlotCache>(memory.shape, std::move(memory_keys), std::move(buffers));
  cache->set_step_rows(step_rows());
  if (has_device_slots(memory.values)) cache->set_device_slots(std::make_unique<DeviceSlots>(memory.values.device()));
  return cache;
}

std::unique_ptr<StepRows> Decoder::step_rows() const {
  auto rows = layers_.front()->feed_forward->step_rows();
  for (const auto& layer : layers_) {
    auto self = layer->self_attention->numbers_of_steps(), cross = layer->cross_attention->numbers_of_steps();
    if (!self || !cross) return {};
    rows->self_numbers.push_back(std::move(*self));
    rows->cross_numbers.push_back(std::move(*cross));
  }
  return rows;
}

const float* Decoder::step(SlotCache& cache, const StepKeys& keys, AttentionProbe* probe) const {
  StepRows& rows = *cache.step_rows();
  ResidualRows stream = stream_of(rows);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const TransformerLayer& layer = *layers_[i];
    layer.self_attention->step(stream.values(), cache.buffer(i), keys, rows.self_numbers[i], rows);
    stream.take();
    layer.cross_attention->step(stream.values(), cache.memory(i), cache.memory_queries(), *cache.memory_keys(), rows.cross_numbers[i],
                                probe, rows);
    stream.take();
    layer.feed_forward->step(stream.values(), rows);
    stream.take();
  }
  return stream.values();
}

Tensor Decoder::step(const Tensor& embedded, SlotCache& cache, const StepKeys& keys, const DeviceStep* there,
                     const ForwardContext& context) {
  const auto memory_queries = std::make_shared<const RaggedShape>(cache.memory_queries());
  Tensor new_slots;  // for layers that take lists
  ResidualStream stream = stream_of({embedded, std::make_shared<const RaggedShape>(keys.queries)}, context);
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
    const auto index = static_cast<size_t>(i);
    TransformerLayer& layer = *layers_[index];
    const ResidualEnd self_end = stream.next_end(site(i, DropoutPlace::kSelfAttention));
    if (there != nullptr && layer.self_attention->takes_one_query(cache.buffer(index))) {
      stream.take(layer.self_attention->step(stream.values(), cache.buffer(index), *there, *cache.device_slots(), self_end, context));
    } else {
      if (!new_slots.defined()) new_slots = tensor_of(keys.new_slots, embedded.device());
      stream.take(layer.self_attention->step(stream.values(), cache.buffer(index), keys, new_slots, self_end, context));
    }
    const ResidualEnd cross_end = stream.next_end(site(i, DropoutPlace::kCrossAttention));
    const MemoryKeys& memory = cache.memory(index);
    const bool is_probed = context.probe != nullptr && context.probe->wants(i, AttentionSite::kCross);
    if (there != nullptr && !is_probed && layer.cross_attention->takes_one_query(memory.keys_values)) {
      stream.take(layer.cross_attention->step(stream.values(), memory, *there, cross_end, context));
    } else {
      const NormedRows queries = {{stream.values().values, memory_queries}};
      stream.take(layer.cross_attention->forward(queries, memory, cache.memory_keys(), cross_end, context));
    }
    stream.take(layer.feed_forward->forward(stream.values(), stream.next_end(site(i, DropoutPlace::kFeedForward)), context));
  }
  return stream.values().values;
}

}  // namespace lacuna
