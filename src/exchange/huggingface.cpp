#include "exchange/huggingface.h"

#include <ATen/ATen.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/json_text.h"
#include "base/log.h"
#include "base/spelling.h"
#include "config/read_options.h"
#include "kernels/residual_norm.h"

namespace lacuna {
namespace {

using nlohmann::ordered_json;

constexpr char kTransformers[] = "transformers";
constexpr float kNever = -1e9F;  // a logit whose exp is exactly 0

/// A vocabulary and an output matrix as transformers has them, made of ours.
struct Tokens {
  std::vector<std::string> src;                      ///< vocab.json: pieces by ids
  std::vector<std::pair<std::string, int64_t>> tgt;  ///< target_vocab.json; empty = as the source's
  std::vector<int64_t> banned;                       ///< that never come in a translation
  int64_t tgt_unk = kUnk, first_tgt = 0, size = 0;   ///< ids of target pieces begin `first_tgt` later; rows of a table
};

/// Collects tensors under the names of transformers.
class Weights {
 public:
  explicit Weights(const OutgoingModel& model) : model_(model) {}

  void add_stack(const std::string& stack, int64_t layers) {
    for (int64_t i = 0; i < layers; ++i) {
      const std::string ours = fmt::format("{}.layers.{}.", stack, i), theirs = "model." + ours;
      linear(ours + "self_attention.qkv", {theirs + "self_attn.q_proj", theirs + "self_attn.k_proj", theirs + "self_attn.v_proj"});
      linear(ours + "self_attention.output", {theirs + "self_attn.out_proj"});
      norm(ours + "self_attention_norm", theirs + "self_attn_layer_norm");
      if (stack == "decoder") {
        linear(ours + "cross_attention.query", {theirs + "encoder_attn.q_proj"});
        linear(ours + "cross_attention.key_value", {theirs + "encoder_attn.k_proj", theirs + "encoder_attn.v_proj"});
        linear(ours + "cross_attention.output", {theirs + "encoder_attn.out_proj"});
        norm(ours + "cross_attention_norm", theirs + "encoder_attn_layer_norm");
      }
      linear(ours + "feed_forward.inner", {theirs + "fc1"});
      linear(ours + "feed_forward.outer", {theirs + "fc2"});
      norm(ours + "feed_forward_norm", theirs + "final_layer_norm");
    }
    if (model_.options.model.norm == NormPlace::kPre) norm(stack + ".norm", "model." + stack + ".layer_norm");
    tensors_["model." + stack + ".embed_positions.weight"] = model_.positions(stack == "encoder" ? "src" : "tgt");
  }

  void add(const std::string& name, const Tensor& tensor) { tensors_[name] = tensor; }
  const NamedTensors& tensors() const { return tensors_; }

 private:
  /// Adds a linear layer of ours as several, whose outputs follow one another in it.
  void linear(const std::string& ours, const std::vector<std::string>& theirs) {
    for (const char* const part : {".weight", ".bias"}) {
      const std::vector<Tensor> parts = model_.weights.at(ours + part).chunk(static_cast<int64_t>(theirs.size()));
      for (size_t i = 0; i < theirs.size(); ++i) tensors_[theirs[i] + part] = parts[i];
    }
  }
  void norm(const std::string& ours, const std::string& theirs) {
    tensors_[theirs + ".weight"] = model_.weights.at(ours + ".gain");
    tensors_[theirs + ".bias"] = model_.weights.at(ours + ".bias");
  }

  const OutgoingModel& model_;
  NamedTensors tensors_;
};

bool is_pegasus(const OutgoingModel& model) {
  return model.options.model.norm == NormPlace::kPre;
}

/// True for a Pegasus model with embeddings that are not one: its table holds the rows of both sides.
bool has_joint_table(const OutgoingModel& model) {
  return is_pegasus(model) && !model.has_shared_embeddings();
}

/// The ids of tokens. In a joint table the target's unk and pieces follow those of the source; bos, which only the decoder reads, and eos,
/// which only the encoder reads, have one row.
Tokens tokens_of(const OutgoingModel& model) {
  Tokens tokens;
  tokens.src = pieces_of(*model.vocabularies.src);
  tokens.size = std::ssize(tokens.src);
  const std::vector<std::string> tgt = pieces_of(*model.vocabularies.tgt);
  if (has_joint_table(model)) {
    tokens.tgt_unk = tokens.size;
    tokens.first_tgt = tokens.size - kEos;  // of the first piece after eos: one after unk
    tokens.size += std::ssize(tgt) - kEos;
  } else {
    tokens.size = std::max(tokens.size, std::ssize(tgt));
  }
  if (tokens.first_tgt != 0 || !model.vocabularies.shared())
    for (int64_t id = 0; id < std::ssize(tgt); ++id)
      tokens.tgt.emplace_back(tgt[static_cast<size_t>(id)], id == kUnk ? tokens.tgt_unk : id <= kEos ? id : id + tokens.first_tgt);
  const auto ban = [&](TokenId id) { tokens.banned.push_back(id == kUnk ? tokens.tgt_unk : id <= kEos ? id : id + tokens.first_tgt); };
  ban(kBos);
  if (!model.options.translate.allow_unk) ban(kUnk);
  for (const std::string& piece : model.options.translate.block_tokens) ban(model.vocabularies.tgt->id_of(piece));
  std::sort(tokens.banned.begin(), tokens.banned.end());
  return tokens;
}

/// Returns rows of a target table or bias in the order of a joint one: those of unk and of the pieces after eos.
Tensor rows_after_source(const Tensor& tgt) {
  return at::cat({tgt.narrow(0, kUnk, 1), tgt.narrow(0, kEos + 1, tgt.size(0) - kEos - 1)});
}

void add_joint_table(Weights& weights, const OutgoingModel& model) {
  Tensor of_source = model.src_embedding().clone();
  of_source[kBos].copy_(model.tgt_embedding()[kBos]);
  const Tensor table = at::cat({of_source, rows_after_source(model.tgt_embedding())});
  for (const char* const name : {"model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"})
    weights.add(name, table);
  Tensor output = at::zeros_like(of_source), bias = at::full({of_source.size(0)}, kNever);
  const Tensor of_target = model.output_bias();
  for (const TokenId id : {kBos, kEos}) {
    output[id].copy_(model.output()[id]);
    bias[id].copy_(of_target[id]);
  }
  weights.add("lm_head.weight", at::cat({output, rows_after_source(model.output())}));
  weights.add("final_logits_bias", at::cat({bias, rows_after_source(of_target)}).unsqueeze(0));
}

/// Returns a table with rows of zeros at its end.
Tensor padded(const Tensor& table, int64_t size) {
  return at::cat({table, at::zeros({size - table.size(0), table.size(1)}, at::kFloat)});
}

/// The tensors of a model whose tables have `size` rows. Before its version 5, transformers has Marian models with vocabularies of one size
/// alone: the smaller one is filled up with tokens that never come.
NamedTensors weights_for(const OutgoingModel& model, int64_t size) {
  Weights weights(model);
  weights.add_stack("encoder", model.options.model.encoder_layers);
  weights.add_stack("decoder", model.options.model.decoder_layers);
  if (has_joint_table(model)) {
    add_joint_table(weights, model);
    return weights.tensors();
  }
  const int64_t missing = size - model.output().size(0);
  if (model.has_shared_embeddings()) {
    weights.add("model.shared.weight", model.src_embedding());
  } else {
    weights.add("model.encoder.embed_tokens.weight", padded(model.src_embedding(), size));
    weights.add("model.decoder.embed_tokens.weight", padded(model.tgt_embedding(), size));
  }
  if (model.options.model.tie_embeddings == TieEmbeddings::kNone) weights.add("lm_head.weight", padded(model.output(), size));
  weights.add("final_logits_bias", at::cat({model.output_bias(), at::full({missing}, kNever)}).unsqueeze(0));
  return weights.tensors();
}

std::string config_json(const OutgoingModel& model, const Tokens& tokens) {
  const ModelOptions& ours = model.options.model;
  ordered_json json;
  json["architectures"] = {is_pegasus(model) ? "PegasusForConditionalGeneration" : "MarianMTModel"};
  json["model_type"] = is_pegasus(model) ? "pegasus" : "marian";
  json["is_encoder_decoder"] = true;
  json["vocab_size"] = tokens.size;
  json["tie_word_embeddings"] = ours.tie_embeddings != TieEmbeddings::kNone && !has_joint_table(model);
  if (!is_pegasus(model)) {
    json["decoder_vocab_size"] = tokens.size;
    json["share_encoder_decoder_embeddings"] = model.has_shared_embeddings();
  }
  json["d_model"] = ours.d_model;
  json["encoder_layers"] = json["num_hidden_layers"] = ours.encoder_layers;
  json["decoder_layers"] = ours.decoder_layers;
  json["encoder_attention_heads"] = json["decoder_attention_heads"] = ours.num_heads;
  json["encoder_ffn_dim"] = ours.encoder_ff();
  json["decoder_ffn_dim"] = ours.decoder_ff();
  json["activation_function"] = write_options(ours).find("activation")->text();  // their names are ours
  json["max_position_embeddings"] = kOutgoingPositions;
  json["scale_embedding"] = true;
  json["dropout"] = ours.dropout;
  json["attention_dropout"] = ours.attention_dropout;
  json["activation_dropout"] = ours.activation_dropout;
  json["pad_token_id"] = json["decoder_start_token_id"] = kBos;
  json["eos_token_id"] = json["forced_eos_token_id"] = kEos;
  return json_text(json, 2) + "\n";
}

/// Logs the keys of search whose values have no counterpart.
void warn_of_search(const TranslateOptions& search) {
  const TranslateOptions usual;
  std::vector<std::string> left_out;
  if (search.length_penalty_type == LengthPenalty::kGnmt) left_out.emplace_back("length_penalty_type: gnmt");
  if (search.repetition_penalty != usual.repetition_penalty) left_out.emplace_back("repetition_penalty");
  if (search.sampling != Sampling::kNone) left_out.emplace_back("sampling");
  if (search.guard != Guard::kNone) left_out.emplace_back("guard");
  if (!search.shortlist.empty()) left_out.emplace_back("shortlist");
  if (!left_out.empty()) log_warning("keys of `translate` that transformers has no counterpart of are left out: {}", join(left_out));
}

std::string generation_json(const OutgoingModel& model, const Tokens& tokens) {
  const TranslateOptions& search = model.options.translate;
  ordered_json json;
  json["pad_token_id"] = json["decoder_start_token_id"] = kBos;
  json["eos_token_id"] = json["forced_eos_token_id"] = kEos;
  json["suppress_tokens"] = tokens.banned;
  json["max_length"] = std::min(search.max_length + 1, kOutgoingPositions);   // the start is counted there
  if (search.min_length > 1) json["min_new_tokens"] = search.min_length - 1;  // eos is not counted there
  json["num_beams"] = search.beam_size;
  if (search.beam_size > 1) {
    json["length_penalty"] = search.length_penalty_type == LengthPenalty::kNone ? 0.0 : search.length_penalty;
    json["early_stopping"] = false;
  }
  if (search.no_repeat_ngram_size > 0) json["no_repeat_ngram_size"] = search.no_repeat_ngram_size;
  return json_text(json, 2) + "\n";
}

std::string tokenizer_json(const OutgoingModel& model, const Tokens& tokens) {
  const auto language = [](const std::string& code) { return code.empty() ? ordered_json() : ordered_json(code); };
  ordered_json json;
  json["tokenizer_class"] = "MarianTokenizer";
  json["source_lang"] = language(model.options.data.src_lang);
  json["target_lang"] = language(model.options.data.tgt_lang);
  json["unk_token"] = tokens.src[kUnk];
  json["pad_token"] = tokens.src[kBos];
  json["eos_token"] = tokens.src[kEos];
  json["model_max_length"] = kOutgoingPositions;
  json["separate_vocabs"] = !tokens.tgt.empty();
  json["sp_model_kwargs"] = ordered_json::object();
  json["split_special_tokens"] = true;  // "</s>" in a text is text
  json["clean_up_tokenization_spaces"] = false;
  return json_text(json, 2) + "\n";
}

/// Pieces and their ids as a JSON object.
using PieceIds = std::vector<std::pair<std::string, int64_t>>;
std::string vocabulary_json(const PieceIds& pieces) {
  std::string text = "{";
  for (const auto& [piece, id] : pieces) {
    text += text.size() > 1 ? ",\n" : "\n";
    text += fmt::format("  {}: {}", json_text(piece), id);
  }
  return text + "\n}\n";
}

void add_vocabularies(FileSink& files, const Tokens& tokens) {
  PieceIds src;
  for (const std::string& piece : tokens.src) src.emplace_back(piece, std::ssize(src));
  files.add("vocab.json", vocabulary_json(src));
  if (!tokens.tgt.empty()) files.add("target_vocab.json", vocabulary_json(tokens.tgt));
}

constexpr char kUseWithTransformers[] = R"(```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = AutoModelForSeq2SeqLM.from_pretrained("FOLDER")
batch = tokenizer(["A sentence."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
```

Needs the packages transformers, torch, sentencepiece and sacremoses.
)";

}  // namespace

void require_huggingface_has(const OutgoingModel& model) {
  const ModelOptions& ours = model.options.model;
  const char* const use_ctranslate2 = "--to ctranslate2 can";
  if (ours.norm_type == NormType::kRms)
    refuse_key("model.norm_type", "rms", kTransformers, "--to ctranslate2 can, or train with norm_type: layer");
  if (ours.positions != Positions::kSinusoidal)
    refuse_key("model.positions", write_options(ours).find("positions")->text(), kTransformers,
               "it would put sinusoids in their place when it saves the model. --to ctranslate2 can, or train with positions: sinusoidal");
  if (ours.activation == Activation::kSwiglu) refuse_key("model.activation", "swiglu", kTransformers, "train with swish");
  if (ours.position_spacing != PositionSpacing::kPaper)
    refuse_key("model.position_spacing", "tensor2tensor", kTransformers, use_ctranslate2);
  if (ours.position_start != 0) refuse_key("model.position_start", std::to_string(ours.position_start), kTransformers, use_ctranslate2);
  if (ours.norm_epsilon != 0 && ours.norm_epsilon != kLayerNormEpsilon)
    refuse_key("model.norm_epsilon", fmt::format("{}", ours.norm_epsilon), kTransformers, use_ctranslate2);
  if (ours.decoder_start == DecoderStart::kZero && model.tgt_embedding()[kBos].count_nonzero().item<int64_t>() != 0)
    refuse_key("model.decoder_start", "zero, but the embedding of bos is not", kTransformers, use_ctranslate2);
  require_sentencepiece(model, kTransformers);
}

void write_huggingface(FileSink& files, OutgoingModel model, const ModelTerms& terms) {
  model = with_concatenated_positions(std::move(model));
  const Tokens tokens = tokens_of(model);
  warn_of_search(model.options.translate);
  files.add("README.md", model_card(model, terms, kUseWithTransformers));
  files.add("config.json", config_json(model, tokens));
  files.add("generation_config.json", generation_json(model, tokens));
  files.add("tokenizer_config.json", tokenizer_json(model, tokens));
  add_vocabularies(files, tokens);
  add_sentencepiece_models(files, model.vocabularies);
  const NamedTensors weights = weights_for(model, tokens.size);
  files.add("model.safetensors", [&](const PieceWriter& put) { write_safetensors(put, weights); });
}

}  // namespace lacuna
