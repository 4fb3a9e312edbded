#include "model/encoder.h"

#include "model/residual_stream.h"

namespace lacuna {

EncoderLayer::EncoderLayer(const ModelOptions& options, const AttentionChoice& choice, int layer, const ParameterPath& path)
    : self_attention(register_module(
          "self_attention",
          std::make_shared<SelfAttention>(options, AttentionPlace{AttentionSite::kEncoderSelf, layer, choice}, path / "self_attention"))),
      self_attention_norm(register_module("self_attention_norm", std::make_shared<Norm>(options.norm_type, options.d_model))),
      feed_forward(register_module(
          "feed_forward",
          std::make_shared<FeedForward>(options, options.encoder_ff(), DropoutSite{Stack::kEncoder, layer, DropoutPlace::kActivation},
                                        path / "feed_forward"))),
      feed_forward_norm(register_module("feed_forward_norm", std::make_shared<Norm>(options.norm_type, options.d_model))) {}

Encoder::Encoder(const ModelOptions& options, const AttentionPlan& attention, const ParameterPath& path)
    : norm_place_(options.norm), dropout_(options.dropout) {
  const auto list = register_module("layers", std::make_shared<torch::nn::Module>());
  for (int i = 0; i < options.encoder_layers; ++i) {
    const auto layer =
        std::make_shared<EncoderLayer>(options, attention.encoder_self[static_cast<size_t>(i)], i, path / "layers" / std::to_string(i));
    list->register_module(std::to_string(i), layer);
    layers_.push_back(layer);
    norms_.insert(norms_.end(), {layer->self_attention_norm, layer->feed_forward_norm});
  }
  if (norm_place_ == NormPlace::kPre) norms_.push_back(register_module("norm", std::make_shared<Norm>(options.norm_type, options.d_model)));
}

Ragged Encoder::forward(const Ragged& embedded, const ForwardContext& context) {
  ResidualStream stream(norm_place_, norms_, embedded, dropout_, context);
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
    EncoderLayer& layer = *layers_[static_cast<size_t>(i)];
    stream.take(
        layer.self_attention->forward(stream.values(), stream.next_end({Stack::kEncoder, i, DropoutPlace::kSelfAttention}), context));
    stream.take(layer.feed_forward->forward(stream.values(), stream.next_end({Stack::kEncoder, i, DropoutPlace::kFeedForward}), context));
  }
  return stream.values();
}

}  // namespace lacuna
