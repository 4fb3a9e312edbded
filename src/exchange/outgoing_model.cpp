#include "exchange/outgoing_model.h"

#include <ATen/ATen.h>

#include <set>

#include "attention/attention.h"
#include "base/error.h"
#include "base/log.h"
#include "model/embedding.h"
#include "text/normalization.h"
#include "text/piece_list.h"

namespace lacuna {
namespace {

void require_softmax(const ModelOptions& model) {
  ModelOptions plain = model;
  plain.attention = ConfigNode();
  const PlanDifference other = difference(resolve_attention(model), resolve_attention(plain));
  if (other.first.empty()) return;
  throw CheckpointError("model.attention is " + other.first +
                        "; other programs have softmax at all sites. Export it as if it were softmax (--model.attention softmax), which "
                        "computes something else than was trained: compare its translations first, or fine-tune it so");
}

/// Returns the dimensions of a parameter that run over the features of the residual stream: 0, 1, or none.
std::vector<int64_t> residual_dimensions(const std::string& name) {
  if (name == "output.bias") return {};
  const auto ends_with = [&](const char* end) { return name.ends_with(end); };
  if (name.find(".layers.") == std::string::npos) return {name.ends_with("norm.gain") || name.ends_with("norm.bias") ? 0 : 1};
  if (ends_with("_norm.gain") || ends_with("_norm.bias")) return {0};
  if (ends_with("output.weight") || ends_with("output.bias") || ends_with("outer.weight") || ends_with("outer.bias")) return {0};
  if (ends_with("qkv.weight") || ends_with("query.weight") || ends_with("key_value.weight") || ends_with("inner.weight")) return {1};
  return {};
}

}  // namespace

const Tensor& OutgoingModel::output() const {
  return options.model.tie_embeddings == TieEmbeddings::kNone ? weights.at("output.weight") : tgt_embedding();
}

Tensor OutgoingModel::output_bias() const {
  return options.model.output_bias ? weights.at("output.bias") : at::zeros({output().size(0)}, at::kFloat);
}

Tensor OutgoingModel::positions(const std::string& side) const {
  const ModelOptions& model = options.model;
  if (model.positions == Positions::kLearned) return weights.at(side + "_positions.weight");
  if (model.positions == Positions::kNone) return at::zeros({kOutgoingPositions, model.d_model}, at::kFloat);
  return sinusoidal_positions(kOutgoingPositions, model).to(at::kFloat);
}

OutgoingModel load_outgoing(const std::string& path, const std::vector<std::string>& overrides) {
  require_softmax(options_of_checkpoint(path, overrides).model);  // before weights are read
  const LoadedModel loaded = load_model(path, "cpu", overrides);
  return {loaded.options, loaded.vocabularies, loaded.info, weights_of(*loaded.model)};
}

OutgoingModel with_concatenated_positions(OutgoingModel model) {
  ModelOptions& options = model.options.model;
  if (options.positions != Positions::kSinusoidal || options.position_layout == PositionLayout::kConcatenated) return model;
  options.position_layout = PositionLayout::kConcatenated;
  const Tensor order = at::cat({at::arange(0, options.d_model, 2), at::arange(1, options.d_model, 2)});
  for (auto& [name, tensor] : model.weights)
    for (const int64_t dimension : residual_dimensions(name)) tensor = tensor.index_select(dimension, order);
  return model;
}

void refuse_key(const std::string& key, const std::string& value, const std::string& format, const std::string& remedy) {
  throw CheckpointError(key + " of the model is " + value + ", which " + format + " cannot hold; " + remedy);
}

void require_sentencepiece(const OutgoingModel& model, const std::string& format) {
  if (model.vocabularies.src->is_sentencepiece() && model.vocabularies.tgt->is_sentencepiece()) return;
  refuse_key("data.tokenizer", "none", format, "it needs a SentencePiece model. CTranslate2 takes tokens as they are: --to ctranslate2");
}

std::vector<std::string> pieces_of(const Vocabulary& vocabulary) {
  std::vector<std::string> pieces;
  std::set<std::string> known;
  pieces.reserve(static_cast<size_t>(vocabulary.size()));
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    pieces.push_back(vocabulary.piece(id));
    if (!known.insert(pieces.back()).second)
      throw CheckpointError(
          "the vocabulary has two pieces \"" + pieces.back() +
          "\", and other programs know pieces by their names; train with a vocabulary that has a bos and an eos of its own");
  }
  return pieces;
}

void add_sentencepiece_models(FileSink& files, const Vocabularies& vocabularies) {
  const std::string &src = vocabularies.src->serialized(), &tgt = vocabularies.tgt->serialized();
  files.add("source.spm", without_piece_list(src));
  files.add("target.spm", without_piece_list(model_for_targets(tgt).value_or(tgt)));
  for (const Vocabulary* const side : {vocabularies.src.get(), vocabularies.tgt.get()})
    if (side->start() != kUnk)
      log_warning("lines begin with {} by themselves here; for other programs it must be in the text", side->piece(side->start()));
}

}  // namespace lacuna
