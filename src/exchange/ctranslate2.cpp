#include "exchange/ctranslate2.h"

#include <ATen/ATen.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>

#include "base/json_text.h"
#include "kernels/packed_weight.h"

namespace lacuna {
namespace {

constexpr uint32_t kFormatVersion = 6, kSpecRevision = 7;
constexpr char kSpecName[] = "TransformerSpec";

/// Returns the number of an activation in include/ctranslate2/ops/activation.h.
int64_t number_of(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      break;
    case Activation::kGelu:
      return 3;
    case Activation::kSwish:
    case Activation::kSwiglu:  // of the gate
      return 2;
  }
  return 0;
}

/// The variables of model.bin.
class Variables {
 public:
  Variables(const OutgoingModel& model, Precision precision) : model_(model), precision_(precision) {}

  void add_encoder() {
    const ModelOptions& options = model_.options.model;
    add_stack_settings("encoder", "src");
    flag("encoder/embeddings_merge", 0);
    flag("encoder/multi_query_attention", 0);
    weight("encoder/embeddings_0/weight", model_.src_embedding());
    for (int64_t i = 0; i < options.encoder_layers; ++i) add_layer("encoder", i);
  }

  void add_decoder() {
    const ModelOptions& options = model_.options.model;
    add_stack_settings("decoder", "tgt");
    for (const char* const name : {"alibi", "alibi_use_positive_positions", "scale_alibi"}) flag(std::string("decoder/") + name, 0);
    flag("decoder/start_from_zero_embedding", options.decoder_start == DecoderStart::kZero ? 1 : 0);
    const AlignmentSource source = model_.options.alignment_source();  // as `translate --alignment`; CTranslate2 averages the first heads
    number("decoder/alignment_layer", source.layer);
    number("decoder/alignment_heads", source.head == 0 ? 1 : options.num_heads);
    weight("decoder/embeddings/weight", model_.tgt_embedding());
    weight("decoder/projection/weight", model_.output());
    if (options.output_bias) tensors_["decoder/projection/bias"] = model_.output_bias();
    for (int64_t i = 0; i < options.decoder_layers; ++i) add_layer("decoder", i);
  }

  void write(const PieceWriter& put) const {
    word(put, kFormatVersion);
    text(put, kSpecName);
    word(put, kSpecRevision);
    word(put, static_cast<uint32_t>(tensors_.size()));
    for (const auto& [name, tensor] : tensors_) {
      text(put, name);
      byte(put, static_cast<uint8_t>(tensor.dim()));
      for (const int64_t size : tensor.sizes()) word(put, static_cast<uint32_t>(size));
      byte(put, tensor.scalar_type() == at::kFloat ? 0 : tensor.scalar_type() == at::kChar ? 1 : 2);
      const Tensor bytes = tensor.contiguous();
      word(put, static_cast<uint32_t>(bytes.nbytes()));
      put({static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()});
    }
    word(put, static_cast<uint32_t>(aliases_.size()));
    for (const auto& [alias, name] : aliases_) {
      text(put, alias);
      text(put, name);
    }
  }

 private:
  static void byte(const PieceWriter& put, uint8_t value) { put({reinterpret_cast<const char*>(&value), sizeof(value)}); }
  static void word(const PieceWriter& put, uint32_t value) { put({reinterpret_cast<const char*>(&value), sizeof(value)}); }
  static void text(const PieceWriter& put, const std::string& value) {
    const auto size = static_cast<uint16_t>(value.size() + 1);
    put({reinterpret_cast<const char*>(&size), sizeof(size)});
    put({value.c_str(), size});
  }

  void flag(const std::string& name, int64_t value) { tensors_[name] = at::scalar_tensor(value, at::kChar); }
  void number(const std::string& name, int64_t value) { tensors_[name] = at::scalar_tensor(value, at::kShort); }

  /// Adds a matrix; one that is there already, under the first of its names.
  void weight(const std::string& name, const Tensor& matrix) {
    const auto [former, is_new] = names_.emplace(matrix.const_data_ptr(), name);
    if (!is_new) {
      aliases_[name] = former->second;
      return;
    }
    if (precision_ != Precision::kInt8) {
      tensors_[name] = matrix;
      return;
    }
    const QuantizedWeight rounded = quantized(matrix.contiguous());
    tensors_[name] = rounded.bytes;
    tensors_[name + "_scale"] = at::where(rounded.scales > 0, rounded.scales.reciprocal(), 1);  // what weights are multiplied by
  }
  /// Adds a linear layer: one of `parts`, whose outputs follow one another in ours.
  void linear(const std::string& theirs, const std::string& ours, int64_t part = 0, int64_t parts = 1) {
    const auto place = static_cast<size_t>(part);
    weight(theirs + "/weight", model_.weights.at(ours + ".weight").chunk(parts)[place]);
    tensors_[theirs + "/bias"] = model_.weights.at(ours + ".bias").chunk(parts)[place];
  }
  void norm(const std::string& theirs, const std::string& ours) {
    tensors_[theirs + "/gamma"] = model_.weights.at(ours + ".gain");
    if (model_.options.model.norm_type == NormType::kLayer) tensors_[theirs + "/beta"] = model_.weights.at(ours + ".bias");
  }

  void add_stack_settings(const std::string& stack, const std::string& side) {
    const ModelOptions& options = model_.options.model;
    flag(stack + "/activation", number_of(options.activation));
    flag(stack + "/pre_norm", options.norm == NormPlace::kPre ? 1 : 0);
    flag(stack + "/scale_embeddings", 1);
    number(stack + "/num_heads", options.num_heads);
    if (stack == "decoder" || options.positions == Positions::kLearned)
      tensors_[stack + "/position_encodings/encodings"] = model_.positions(side);
    else
      aliases_["encoder/position_encodings/encodings"] = "decoder/position_encodings/encodings";
    if (options.norm == NormPlace::kPre) norm(stack + "/layer_norm", stack + ".norm");
  }

  void add_layer(const std::string& stack, int64_t index) {
    const std::string theirs = fmt::format("{}/layer_{}/", stack, index), ours = fmt::format("{}.layers.{}.", stack, index);
    norm(theirs + "self_attention/layer_norm", ours + "self_attention_norm");
    linear(theirs + "self_attention/linear_0", ours + "self_attention.qkv");
    linear(theirs + "self_attention/linear_1", ours + "self_attention.output");
    if (stack == "decoder") {
      norm(theirs + "attention/layer_norm", ours + "cross_attention_norm");
      linear(theirs + "attention/linear_0", ours + "cross_attention.query");
      linear(theirs + "attention/linear_1", ours + "cross_attention.key_value");
      linear(theirs + "attention/linear_2", ours + "cross_attention.output");
    }
    norm(theirs + "ffn/layer_norm", ours + "feed_forward_norm");
    if (model_.options.model.activation == Activation::kSwiglu) {
      linear(theirs + "ffn/linear_0", ours + "feed_forward.inner", 0, 2);
      linear(theirs + "ffn/linear_0_noact", ours + "feed_forward.inner", 1, 2);
    } else {
      linear(theirs + "ffn/linear_0", ours + "feed_forward.inner");
    }
    linear(theirs + "ffn/linear_1", ours + "feed_forward.outer");
  }

  const OutgoingModel& model_;
  Precision precision_;
  NamedTensors tensors_;
  std::map<std::string, std::string> aliases_;
  std::map<const void*, std::string> names_;  // of the matrices, by their memory
};

std::string config_of(const OutgoingModel& model) {
  const Vocabulary& tgt = *model.vocabularies.tgt;
  nlohmann::ordered_json json;
  json["add_source_bos"] = false;
  json["add_source_eos"] = true;
  json["bos_token"] = json["decoder_start_token"] = tgt.piece(kBos);
  json["eos_token"] = tgt.piece(kEos);
  json["unk_token"] = tgt.piece(kUnk);
  if (model.options.model.norm_epsilon > 0) json["layer_norm_epsilon"] = model.options.model.norm_epsilon;
  return json_text(json, 2) + "\n";
}

}  // namespace

void require_ctranslate2_has(const OutgoingModel& model) {
  if (model.options.model.positions == Positions::kRope)
    refuse_key("model.positions", "rope", "CTranslate2", "its encoders add positions to embeddings: train with sinusoidal or learned ones");
}

std::string use_of_ctranslate2(const OutgoingModel& model) {
  if (!model.vocabularies.src->is_sentencepiece())
    return R"(```python
import ctranslate2

translator = ctranslate2.Translator("FOLDER")
print(translator.translate_batch(["tokens of a sentence".split()])[0].hypotheses[0])
```

Needs the package ctranslate2.
)";
  return R"(```python
import ctranslate2, sentencepiece

source = sentencepiece.SentencePieceProcessor(model_file="FOLDER/source.spm")
target = sentencepiece.SentencePieceProcessor(model_file="FOLDER/target.spm")
translator = ctranslate2.Translator("FOLDER")
results = translator.translate_batch([source.encode("A sentence.", out_type=str)])
print(target.decode(results[0].hypotheses[0]))
```

Needs the packages ctranslate2 and sentencepiece.
)";
}

void write_ctranslate2(FileSink& files, const OutgoingModel& model, Precision precision) {
  const nlohmann::ordered_json src = pieces_of(*model.vocabularies.src), tgt = pieces_of(*model.vocabularies.tgt);
  for (const TokenId id : {kUnk, kBos, kEos})
    if (src[static_cast<size_t>(id)] != tgt[static_cast<size_t>(id)])
      refuse_key("the vocabulary", "two, whose special tokens have different names", "CTranslate2",
                 "train with the same names on both sides");
  files.add("config.json", config_of(model));
  if (src == tgt) {
    files.add("shared_vocabulary.json", json_text(src, 1) + "\n");
  } else {
    files.add("source_vocabulary.json", json_text(src, 1) + "\n");
    files.add("target_vocabulary.json", json_text(tgt, 1) + "\n");
  }
  Variables variables(model, precision);
  variables.add_decoder();
  variables.add_encoder();
  files.add("model.bin", [&](const PieceWriter& put) { variables.write(put); });
}

}  // namespace lacuna
