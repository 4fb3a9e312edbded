#include "exchange/huggingface_import.h"

#include <ATen/ATen.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "base/spelling.h"
#include "exchange/huggingface_tokens.h"
#include "exchange/incoming_json.h"

namespace lacuna {
namespace {

constexpr uint64_t kMostConfig = 1 << 20;

constexpr char kConfig[] = "config.json", kWeightsFile[] = "model.safetensors", kIndex[] = "model.safetensors.index.json";

/// The kinds of models that transformers tells apart.
enum class Family { kMarian, kPegasus, kM2m100 };

Family family_of(const IncomingJson& config) {
  const std::string type = config.text("model_type").value_or("");
  if (type == "marian") return Family::kMarian;
  if (type == "pegasus") return Family::kPegasus;
  if (type == "m2m_100") return Family::kM2m100;
  config.refuse("model_type", "marian, pegasus (as `lacuna export` writes it) or m2m_100");
}

/// Refuses what some old configurations may say and transformers or Lacuna has not.
void require_supported(const IncomingJson& config, Family family) {
  config.require_flag("scale_embedding", true);
  if (!config.flag("scale_embedding")) config.refuse("scale_embedding", "true, the only value that Lacuna reads");
  config.require_flag("normalize_embedding", false);
  if (family == Family::kMarian) {
    config.require_flag("normalize_before", false);
    config.require_flag("add_final_layer_norm", false);
    config.require_flag("static_position_embeddings", true);
  }
  if (!config.object("quantization_config").empty()) config.refuse("quantization_config", "weights in fp32, fp16 or bf16");
  if (config.required("encoder_attention_heads") != config.required("decoder_attention_heads"))
    config.refuse("decoder_attention_heads", "as many as encoder_attention_heads");
}

std::string activation_of(const IncomingJson& config) {
  std::string name = config.text("activation_function").value_or("");
  if (name == "relu" || name == "gelu") return name;
  if (name == "swish" || name == "silu") return "swish";
  config.refuse("activation_function", "relu, gelu, swish or silu");
}

void set_model(IncomingOptions& options, const IncomingJson& config, Family family, PositionsAs positions) {
  const auto set = [&](const std::string& key, const auto& value) { options.set("model", key, value); };
  set("d_model", config.required("d_model"));
  set("num_heads", config.required("encoder_attention_heads"));
  set("encoder_layers", config.required("encoder_layers"));
  set("decoder_layers", config.required("decoder_layers"));
  set("d_ff", config.required("encoder_ffn_dim"));
  if (const int64_t inner = config.required("decoder_ffn_dim"); inner != config.required("encoder_ffn_dim")) set("decoder_d_ff", inner);
  set("norm", family == Family::kMarian ? "post" : "pre");
  set("activation", activation_of(config));
  set("position_layout", "concatenated");
  if (family == Family::kM2m100) set("position_start", 2);
  if (family == Family::kM2m100 || positions == PositionsAs::kMarian) set("position_spacing", "tensor2tensor");
  for (const char* const key : {"dropout", "attention_dropout", "activation_dropout"})
    if (const auto share = config.real(key)) set(key, fmt::format("{}", *share));
}

/// Takes keys of search from one of the files that has them.
void set_search(IncomingOptions& options, const IncomingJson& config, const IncomingJson* generation, const HuggingFaceTokens& tokens) {
  const auto set = [&](const std::string& key, const auto& value) { options.set("translate", key, value); };
  const IncomingJson& said = generation != nullptr ? *generation : config;
  if (const auto beam = said.number("num_beams")) set("beam_size", *beam);
  if (const auto most = said.number("max_length"); most && *most > 1) set("max_length", *most - 1);  // the start is counted there
  if (const auto penalty = said.real("length_penalty")) set("length_penalty", fmt::format("{}", *penalty));
  if (const auto size = said.number("no_repeat_ngram_size")) set("no_repeat_ngram_size", *size);
  std::vector<int64_t> banned;
  const auto ban = [&](const nlohmann::json& id, const std::string& key) {
    if (!id.is_number_unsigned()) said.refuse(key, "ids of tokens");
    banned.push_back(id.get<int64_t>());
  };
  for (const nlohmann::json& id : said.list("suppress_tokens")) ban(id, "suppress_tokens");
  if (!banned.empty() && std::ranges::find(banned, tokens.tgt.rows[kUnk]) == banned.end()) set("allow_unk", "true");
  for (const nlohmann::json& word : said.list("bad_words_ids")) {
    if (!word.is_array() || word.empty()) said.refuse("bad_words_ids", "lists of ids");
    if (word.size() == 1)
      ban(word[0], "bad_words_ids");
    else
      log_warning("{}: bad_words_ids holds a word of {} tokens, which is left out: Lacuna blocks single pieces", said.path(), word.size());
  }
  std::vector<std::string> blocked = tokens.never;
  for (size_t id = kEos + 1; id < tokens.tgt.rows.size(); ++id)
    if (std::ranges::find(banned, tokens.tgt.rows[id]) != banned.end()) blocked.push_back(tokens.tgt.pieces[id]);
  if (!blocked.empty()) options.set_list("translate", "block_tokens", blocked);
}

/// Reads the tensors: one file, or several that an index names.
NamedTensors read_tensors(IncomingFiles& files) {
  if (files.has(kWeightsFile)) return files.tensors(kWeightsFile);
  if (files.has(kIndex)) {
    std::set<std::string> parts;
    const nlohmann::json index = files.json(kIndex, 16 << 20);
    const auto map = index.find("weight_map");
    if (map == index.end() || !map->is_object())
      throw DataError(files.path(kIndex) + ": weight_map is missing; expected the files of tensors");
    for (const auto& [tensor, file] : map->items()) {
      if (!file.is_string() || !is_name_of_file(file.get<std::string>()))
        throw DataError(files.path(kIndex) + ": the file of " + tensor + " is no name of a file of the folder");
      parts.insert(file.get<std::string>());
    }
    NamedTensors all;
    for (const std::string& part : parts) all.merge(files.tensors(part));
    return all;
  }
  if (files.has("pytorch_model.bin"))
    throw DataError(
        files.path("pytorch_model.bin") +
        " is a pickle, which Lacuna does not read: it may hold a program. Write model.safetensors beside it with transformers, if "
        "you trust it: python3 -c 'import sys; from transformers import AutoModelForSeq2SeqLM as M; "
        "M.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[1])' " +
        shell_word(files.folder()));
  throw DataError(files.path(kWeightsFile) + " is missing; expected the weights");
}

/// Arranges the tensors of a model under our names.
class Arranger {
 public:
  Arranger(IncomingWeights& theirs, const IncomingJson& config, Family family)
      : theirs_(theirs), config_(config), d_(config.required("d_model")), has_last_norm_(family != Family::kMarian) {}

  void add_stack(const std::string& stack) {
    const int64_t inner = config_.required(stack + "_ffn_dim");
    for (int64_t i = 0; i < config_.required(stack + "_layers"); ++i) {
      const std::string ours = fmt::format("{}.layers.{}.", stack, i), theirs = "model." + ours;
      linear(ours + "self_attention.qkv", {theirs + "self_attn.q_proj", theirs + "self_attn.k_proj", theirs + "self_attn.v_proj"}, d_, d_);
      linear(ours + "self_attention.output", {theirs + "self_attn.out_proj"}, d_, d_);
      norm(ours + "self_attention_norm", theirs + "self_attn_layer_norm");
      if (stack == "decoder") {
        linear(ours + "cross_attention.query", {theirs + "encoder_attn.q_proj"}, d_, d_);
        linear(ours + "cross_attention.key_value", {theirs + "encoder_attn.k_proj", theirs + "encoder_attn.v_proj"}, d_, d_);
        linear(ours + "cross_attention.output", {theirs + "encoder_attn.out_proj"}, d_, d_);
        norm(ours + "cross_attention_norm", theirs + "encoder_attn_layer_norm");
      }
      linear(ours + "feed_forward.inner", {theirs + "fc1"}, inner, d_);
      linear(ours + "feed_forward.outer", {theirs + "fc2"}, d_, inner);
      norm(ours + "feed_forward_norm", theirs + "final_layer_norm");
    }
    if (has_last_norm_) norm(stack + ".norm", "model." + stack + ".layer_norm");
    for (const char* const table : {".embed_positions.weight", ".embed_positions.weights"}) theirs_.leave("model." + stack + table);
  }

  void add(const std::string& name, const Tensor& tensor) { ours_[name] = tensor.contiguous(); }
  NamedTensors take() { return std::move(ours_); }

 private:
  void linear(const std::string& ours, const std::vector<std::string>& theirs, int64_t outputs, int64_t inputs) {
    std::vector<Tensor> weights, biases;
    weights.reserve(theirs.size());
    biases.reserve(theirs.size());
    for (const std::string& name : theirs) {
      weights.push_back(theirs_.take(name + ".weight", {outputs, inputs}));
      biases.push_back(theirs_.take(name + ".bias", {outputs}));
    }
    add(ours + ".weight", at::cat(weights));
    add(ours + ".bias", at::cat(biases));
  }
  void norm(const std::string& ours, const std::string& theirs) {
    add(ours + ".gain", theirs_.take(theirs + ".weight", {d_}));
    add(ours + ".bias", theirs_.take(theirs + ".bias", {d_}));
  }

  IncomingWeights& theirs_;
  const IncomingJson& config_;
  int64_t d_;
  bool has_last_norm_;
  NamedTensors ours_;
};

/// The tables of a model: embeddings of both sides, and what makes logits.
struct Tables {
  Tensor src, tgt, output, bias;
  bool is_output_tied = false;
};

Tables take_tables(IncomingWeights& theirs, const IncomingJson& config) {
  const int64_t d = config.required("d_model"), src_size = config.required("vocab_size");
  const int64_t tgt_size = config.number("decoder_vocab_size").value_or(src_size);
  const std::string shared = "model.shared.weight", lm_head = "lm_head.weight";
  const std::string src = "model.encoder.embed_tokens.weight", tgt = "model.decoder.embed_tokens.weight";
  const bool is_tied = config.flag("tie_word_embeddings").value_or(true);
  const bool is_shared = is_tied && config.flag("share_encoder_decoder_embeddings").value_or(true);
  const auto table = [&](const std::vector<std::string>& names, int64_t size) {  // files hold tied tables once, under one of their names
    const auto found = std::ranges::find_if(names, [&](const std::string& name) { return theirs.has(name); });
    return theirs.take(found == names.end() ? names.front() : *found, {size, d});
  };
  Tables tables;
  tables.is_output_tied = is_tied;
  if (is_shared) {
    tables.src = tables.tgt = table({shared, src, tgt, lm_head}, src_size);
  } else {
    tables.src = table({src, shared}, src_size);
    tables.tgt = is_tied ? table({tgt, lm_head, shared}, tgt_size) : table({tgt, shared}, tgt_size);
  }
  tables.output = is_tied ? tables.tgt : table({lm_head}, tgt_size);
  for (const std::string& twice : {shared, src, tgt, lm_head}) theirs.leave(twice);  // those that are tied may be there, too
  const std::string bias = "final_logits_bias";
  tables.bias = theirs.has(bias) ? theirs.take(bias, {1, tgt_size}).view({-1}) : at::zeros({tgt_size}, at::kFloat);
  return tables;
}

/// Throws if a row of the output matrix that has no piece takes part in the softmax.
void require_pieces(const Tables& tables, const PieceOrder& order, const std::string& place) {
  for (const int64_t row : order.rows)
    if (row >= tables.output.size(0))
      throw DataError(fmt::format("{}: has the id {}, the output matrix {} rows; use the files that belong together", place, row,
                                  tables.output.size(0)));
  Tensor is_counted = tables.bias > kNeverCounted;
  const Tensor rows = at::tensor(order.rows, at::kLong);
  is_counted.index_fill_(0, rows.masked_select(rows >= 0), false);
  const int64_t missing = is_counted.sum().item<int64_t>();
  if (missing > 0)
    throw DataError(
        fmt::format("{}: {} of {} rows of the output matrix have no piece, the first of them row {}; use the files that belong "
                    "together",
                    place, missing, tables.output.size(0), is_counted.nonzero()[0].item<int64_t>()));
}

void require_rows(const Tensor& table, const PieceOrder& order, const std::string& place) {
  if (*std::ranges::max_element(order.rows) >= table.size(0))
    throw DataError(fmt::format("{}: has the id {}, the embedding {} rows; use the files that belong together", place,
                                *std::ranges::max_element(order.rows), table.size(0)));
}

bool are_equal_but_for_eos(const Tensor& one, const Tensor& other) {
  return one.sizes() == other.sizes() && one.slice(0, 0, kEos).equal(other.slice(0, 0, kEos)) &&
         one.slice(0, kEos + 1).equal(other.slice(0, kEos + 1));
}

/// Adds embeddings, output matrix and bias, and sets which of them are one. The decoder never reads eos: two tables that differ there alone
/// are one, as those of a model that `lacuna export` has joined.
void add_tables(Arranger& ours, IncomingOptions& options, const Tables& tables, const HuggingFaceTokens& tokens) {
  const bool starts_with_eos = tokens.tgt.rows[kBos] == PieceOrder::kNoRow;
  const auto embedding = [&](const Tensor& table, const PieceOrder& order) {
    Tensor arranged = order.arranged(table);
    if (starts_with_eos) arranged[kBos].copy_(arranged[kEos]);
    return arranged;
  };
  const Tensor src = embedding(tables.src, tokens.src), output = tokens.tgt.arranged(tables.output);
  Tensor tgt = embedding(tables.tgt, tokens.tgt), bias = tokens.tgt.arranged(tables.bias);
  if (starts_with_eos) bias[kBos].fill_(kNeverCounted);
  bool is_tied = tables.is_output_tied;
  if (!is_tied && are_equal_but_for_eos(tgt, output)) {
    tgt[kEos].copy_(output[kEos]);
    is_tied = true;
  }
  const bool is_all = is_tied && tokens.src.pieces == tokens.tgt.pieces && src.equal(tgt);
  const char* const tied = is_tied ? "decoder" : "none";
  options.set("model", "tie_embeddings", is_all ? "all" : tied);
  if (is_all) {
    ours.add("embedding.weight", tgt);
  } else {
    ours.add("src_embedding.weight", src);
    ours.add("tgt_embedding.weight", tgt);
  }
  if (!is_tied) ours.add("output.weight", output);
  if (bias.count_nonzero().item<int64_t>() == 0) return;
  options.set("model", "output_bias", "true");
  ours.add("output.bias", bias);
}

}  // namespace

IncomingModel read_huggingface(IncomingFiles& files, const ImportRequest& request) {
  const IncomingJson config(files.json(kConfig, kMostConfig), files.path(kConfig));
  const Family family = family_of(config);
  require_supported(config, family);
  const HuggingFaceTokens tokens =
      family == Family::kM2m100 ? m2m100_tokens(files, config, request) : marian_tokens(files, config, request);
  IncomingModel model{"Hugging Face transformers, " + *config.text("model_type"), IncomingOptions(config.path()), {}, tokens.vocabularies};
  set_model(model.options, config, family, request.positions);
  std::optional<IncomingJson> generation;
  if (files.has("generation_config.json"))
    generation.emplace(files.json("generation_config.json", kMostConfig), files.path("generation_config.json"));
  set_search(model.options, config, generation ? &*generation : nullptr, tokens);
  for (const auto& [key, code] : {std::pair("src_lang", tokens.src_lang), {"tgt_lang", tokens.tgt_lang}})
    if (!code.empty() && language_code_error(code).empty()) model.options.set("data", key, code);
  IncomingWeights theirs(read_tensors(files), files.folder());
  Arranger ours(theirs, config, family);
  const Tables tables = take_tables(theirs, config);
  require_rows(tables.src, tokens.src, tokens.place);
  require_pieces(tables, tokens.tgt, tokens.place);
  add_tables(ours, model.options, tables, tokens);
  ours.add_stack("encoder");
  ours.add_stack("decoder");
  theirs.require_all_taken();
  model.weights = ours.take();
  return model;
}

}  // namespace lacuna
