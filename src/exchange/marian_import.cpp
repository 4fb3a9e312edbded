#include "exchange/marian_import.h"

#include <ATen/ATen.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/spelling.h"
#include "config/yaml.h"
#include "exchange/npz.h"
#include "exchange/yaml_ids.h"
#include "text/spm_ids.h"

namespace lacuna {
namespace {

constexpr uint64_t kMostModel = uint64_t{8} << 30, kMostSettings = 1 << 20;
constexpr char kModelYml[] = "special:model.yml", kDecoderYml[] = "decoder.yml";
constexpr char kMarianEos[] = "</s>", kMarianUnk[] = "<unk>";

/// A map of settings as Marian writes it.
class MarianSettings {
 public:
  MarianSettings(const std::string& yaml, const std::string& place) : tree_(parse_yaml(yaml, place)), place_(place) {
    if (!tree_.is_map()) throw DataError(place_ + " holds no settings; expected `key: value` in each line");
  }

  /// A scalar, or a list as `[a, b]`; nothing if the key is not there.
  std::optional<std::string> text(const std::string& key) const {
    const ConfigNode* const node = tree_.find(key);
    if (node == nullptr) return {};
    if (node->is_scalar()) return node->text();
    return node->is_null() ? "" : node->to_line();
  }
  /// The items of a list, or a single value.
  std::vector<std::string> list(const std::string& key) const {
    const ConfigNode* const node = tree_.find(key);
    if (node == nullptr) return {};
    if (node->is_scalar()) return {node->text()};
    std::vector<std::string> items;
    items.reserve(node->items().size());
    for (const ConfigNode& item : node->items()) items.push_back(item.text());
    return items;
  }
  bool flag(const std::string& key) const {
    const std::string value = text(key).value_or("false");
    if (value != "true" && value != "false") refuse(key, "true or false");
    return value == "true";
  }
  int64_t number(const std::string& key) const {
    const std::string value = text(key).value_or("");
    int64_t number = -1;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < 0) refuse(key, "a whole number");
    return number;
  }
  bool has(const std::string& key) const { return tree_.find(key) != nullptr; }
  const std::string& place() const { return place_; }

  [[noreturn]] void refuse(const std::string& key, const std::string& expected) const {
    std::string value = text(key).value_or("missing").substr(0, 60);
    if (value.empty()) value = "empty";
    throw DataError(place_ + ": " + key + " is " + value + "; expected " + expected);
  }

 private:
  ConfigNode tree_;
  std::string place_;
};

/// Keys of a model's settings with the values that Lacuna has a model for. A key that is not there has the first.
struct AcceptedKey {
  const char* key;
  std::vector<std::string> values;
};
const std::vector<AcceptedKey>& accepted_keys() {
  static const std::vector<AcceptedKey> keys = {{"type", {"transformer"}},
                                                {"transformer-decoder-autoreg", {"self-attention"}},
                                                {"transformer-ffn-depth", {"2"}},
                                                {"transformer-decoder-ffn-depth", {"0", "2"}},
                                                {"transformer-no-projection", {"false"}},
                                                {"transformer-no-bias", {"false"}},
                                                {"transformer-no-affine", {"false"}},
                                                {"transformer-rnn-projection", {"false"}},
                                                {"transformer-pool", {"false"}},
                                                {"transformer-tied-layers", {"", "[]"}},
                                                {"transformer-train-position-embeddings", {"false"}},
                                                {"transformer-postprocess-emb", {"d", ""}},
                                                {"ulr", {"false"}},
                                                {"lemma-dim-emb", {"0"}},
                                                {"factors-dim-emb", {"0"}},
                                                {"input-types", {"", "[]"}}};
  return keys;
}

void require_accepted(const MarianSettings& settings) {
  for (const auto& [key, values] : accepted_keys())
    if (const auto value = settings.text(key); value && std::ranges::find(values, *value) == values.end())
      settings.refuse(key, (values.front().empty() ? "none" : values.front()) + ", which is what Lacuna has a model for");
}

/// Where the model normalizes: returns true for pre-norm.
bool is_pre_norm(const MarianSettings& settings) {
  const std::string before = settings.text("transformer-preprocess").value_or(""),
                    after = settings.text("transformer-postprocess").value_or("");
  const std::string top = settings.text("transformer-postprocess-top").value_or("");
  if (before.empty() && after == "dan" && top.empty()) return false;
  if (before == "n" && after == "da" && top == "n") return true;
  const bool is_before = !before.empty() && before != "n", is_top = !top.empty() && !(before == "n" && after == "da");
  settings.refuse(is_before ? "transformer-preprocess"
                  : is_top  ? "transformer-postprocess-top"
                            : "transformer-postprocess",
                  "preprocess \"\", postprocess dan and postprocess-top \"\", or n, da and n");
}

void set_model(IncomingOptions& options, const MarianSettings& settings) {
  const auto set = [&](const std::string& key, const auto& value) { options.set("model", key, value); };
  set("d_model", settings.number("dim-emb"));
  set("num_heads", settings.number("transformer-heads"));
  set("encoder_layers", settings.number("enc-depth"));
  set("decoder_layers", settings.number("dec-depth"));
  set("d_ff", settings.number("transformer-dim-ffn"));
  if (settings.has("transformer-decoder-dim-ffn") && settings.number("transformer-decoder-dim-ffn") > 0)
    set("decoder_d_ff", settings.number("transformer-decoder-dim-ffn"));
  set("norm", is_pre_norm(settings) ? "pre" : "post");
  const std::string activation = settings.text("transformer-ffn-activation").value_or("swish");
  if (activation != "relu" && activation != "gelu" && activation != "swish")
    settings.refuse("transformer-ffn-activation", "relu, gelu or swish");
  set("activation", activation);
  set("position_layout", "concatenated");
  set("position_spacing", "tensor2tensor");
  set("norm_epsilon", "1e-6");
  set("decoder_start", "zero");
  set("output_bias", "true");  // of bos, at the least, which Marian has not
}

/// Takes the search that decoder.yml describes.
void set_search(IncomingOptions& options, const MarianSettings& decoder) {
  const auto set = [&](const char* key, const char* theirs) {
    if (const auto value = decoder.text(theirs)) options.set("translate", key, *value);
  };
  set("beam_size", "beam-size");
  set("max_length_ratio", "max-length-factor");
  set("allow_unk", "allow-unk");
  const std::string normalize = decoder.text("normalize").value_or("0");  // as Marian has it without that line
  const std::string off_or_number = normalize == "false" ? "0" : normalize;
  options.set("translate", "length_penalty", normalize == "true" ? "1" : off_or_number);
  const std::string penalty = decoder.text("word-penalty").value_or("0");
  if (penalty.find_first_not_of("0.") != std::string::npos)
    log_warning("{}: word-penalty is {}, which Lacuna's search has not; it is left out", decoder.place(), penalty);
}

/// The pieces of both sides, and what cuts text into them.
struct MarianVocabularies {
  PieceOrder src, tgt;
  Vocabularies vocabularies;
};

/// Returns the names of the vocabularies: those of decoder.yml, else the only ones of the folder that can be.
std::vector<std::string> vocabulary_names(const IncomingFiles& files, const MarianSettings* decoder) {
  std::vector<std::string> names = decoder == nullptr ? std::vector<std::string>{} : decoder->list("vocabs");
  for (std::string& name : names) name = std::filesystem::path(name).filename().string();
  for (const char* const ending : {"vocab.yml", ".spm"})
    if (names.empty())
      for (const std::string& name : files.names())
        if (name.ends_with(ending) && name != "source.spm" && name != "target.spm") names.push_back(name);
  if (names.size() == 1) names.push_back(names.front());
  if (names.size() == 2 && is_name_of_file(names[0]) && is_name_of_file(names[1])) return names;
  const std::string found = names.empty() ? "no vocabulary" : "other vocabularies than one for each side (" + join_first(names) + ")";
  throw DataError(files.folder() + " has " + found + "; expected vocab.yml or vocab.spm, or a decoder.yml that names two under `vocabs`");
}

/// Reads the pieces of a side by Marian's ids.
PieceOrder pieces_of_side(IncomingFiles& files, const std::string& name) {
  const std::string bytes = files.text(name, name.ends_with(".spm") ? kMostSpm : kMostList);
  std::map<int64_t, std::string> pieces;
  int64_t unk = 1, eos = 0;
  if (name.ends_with(".spm")) {
    const SpmIds ids = spm_ids(bytes, files.path(name));
    for (size_t id = 0; id < ids.pieces.size(); ++id) pieces.emplace(std::ssize(pieces), ids.pieces[id]);
    unk = ids.unk;
    eos = ids.eos;
  } else if (name.ends_with(".yml") || name.ends_with(".yaml") || name.ends_with(".json")) {
    pieces = read_yaml_ids(bytes, files.path(name));
    unk = eos = -1;
    for (const auto& [id, piece] : pieces) {
      if (piece == kMarianUnk) unk = id;
      if (piece == kMarianEos) eos = id;
    }
  } else {
    throw DataError(files.path(name) + " is a vocabulary of another kind; expected .yml or .spm");
  }
  if (unk < 0 || eos < 0) throw DataError(files.path(name) + ": has no piece " + (unk < 0 ? kMarianUnk : kMarianEos) + "; expected both");
  int64_t expected = 0;
  for (const auto& [id, piece] : pieces)
    if (id != expected++)
      throw DataError(fmt::format("{}: no piece has the id {}; expected one for each id", files.path(name), expected - 1));
  return order_of(pieces, unk, {}, eos);
}

MarianVocabularies vocabularies_of_folder(IncomingFiles& files, const MarianSettings* decoder, const ImportRequest& request) {
  const std::vector<std::string> names = vocabulary_names(files, decoder);
  MarianVocabularies read;
  read.src = pieces_of_side(files, names[0]);
  read.tgt = names[1] == names[0] ? read.src : pieces_of_side(files, names[1]);
  require_tag(request.src_tag, "--src-tag", read.src);
  require_tag(request.tgt_tag, "--tgt-tag", read.tgt);
  const auto side = [&](const std::string& name, const PieceOrder& order, const char* spm, const std::string& tag) {
    const std::string model = name.ends_with(".spm") ? name : spm;
    return IncomingVocabulary{files.text(model, kMostSpm), files.path(model), order.pieces, tag};
  };
  read.vocabularies =
      vocabularies_of(side(names[0], read.src, "source.spm", request.src_tag), side(names[1], read.tgt, "target.spm", request.tgt_tag));
  return read;
}

/// Arranges Marian's arrays, whose matrices are [inputs, outputs], under our names.
class MarianArranger {
 public:
  MarianArranger(IncomingWeights& theirs, const MarianSettings& settings)
      : theirs_(theirs), settings_(settings), d_(settings.number("dim-emb")), is_pre_(is_pre_norm(settings)) {}

  void add_stack(const std::string& stack, int64_t layers, int64_t inner) {
    for (int64_t i = 0; i < layers; ++i) {
      const std::string ours = fmt::format("{}.layers.{}.", stack, i), theirs = fmt::format("{}_l{}_", stack, i + 1);
      const std::string self = theirs + "self_", cross = theirs + "context_", ffn = theirs + "ffn_";
      linear(ours + "self_attention.qkv", {{self + "Wq", self + "bq"}, {self + "Wk", self + "bk"}, {self + "Wv", self + "bv"}}, d_, d_);
      linear(ours + "self_attention.output", {{self + "Wo", self + "bo"}}, d_, d_);
      norm(ours + "self_attention_norm", self + "Wo");
      if (stack == "decoder") {
        linear(ours + "cross_attention.query", {{cross + "Wq", cross + "bq"}}, d_, d_);
        linear(ours + "cross_attention.key_value", {{cross + "Wk", cross + "bk"}, {cross + "Wv", cross + "bv"}}, d_, d_);
        linear(ours + "cross_attention.output", {{cross + "Wo", cross + "bo"}}, d_, d_);
        norm(ours + "cross_attention_norm", cross + "Wo");
      }
      linear(ours + "feed_forward.inner", {{ffn + "W1", ffn + "b1"}}, inner, d_);
      linear(ours + "feed_forward.outer", {{ffn + "W2", ffn + "b2"}}, d_, inner);
      norm(ours + "feed_forward_norm", ffn + "ffn");
    }
    if (is_pre_) last_norm(stack + ".norm", stack + "_top_ln_");
  }

  /// Adds embeddings, the output matrix and its bias, in which bos has no probability: Marian has no such token.
  void add_tables(IncomingOptions& options, const MarianVocabularies& read) {
    const bool ties_all = settings_.flag("tied-embeddings-all"), ties_src = ties_all || settings_.flag("tied-embeddings-src");
    const bool ties_output = ties_all || settings_.flag("tied-embeddings");
    const auto table = [&](const std::string& name, const PieceOrder& order) {
      return order.arranged(theirs_.take(name, {real_rows(order), d_}));
    };
    const Tensor src = table(ties_src ? "Wemb" : "encoder_Wemb", read.src), tgt = table(ties_src ? "Wemb" : "decoder_Wemb", read.tgt);
    const bool is_all = ties_src && ties_output && read.vocabularies.shared();
    const char* const tied = ties_output ? "decoder" : "none";
    options.set("model", "tie_embeddings", is_all ? "all" : tied);
    if (is_all) {
      ours_["embedding.weight"] = tgt;
    } else {
      ours_["src_embedding.weight"] = src;
      ours_["tgt_embedding.weight"] = tgt;
    }
    const int64_t size = real_rows(read.tgt);
    if (!ties_output) {
      const bool is_turned = theirs_.has("decoder_ff_logit_out_Wt");
      const Tensor output =
          is_turned ? theirs_.take("decoder_ff_logit_out_Wt", {size, d_}) : theirs_.take("decoder_ff_logit_out_W", {d_, size}).t();
      ours_["output.weight"] = read.tgt.arranged(output.contiguous());
    }
    const bool has_bias = !settings_.flag("output-omit-bias");
    Tensor bias = has_bias ? theirs_.take("decoder_ff_logit_out_b", {1, size}).view({-1}) : at::zeros({size}, at::kFloat);
    bias = read.tgt.arranged(bias);
    bias[kBos].fill_(kNeverCounted);
    ours_["output.bias"] = bias;
  }

  NamedTensors take() { return std::move(ours_); }

 private:
  static int64_t real_rows(const PieceOrder& order) { return std::ssize(order.rows) - std::ranges::count(order.rows, PieceOrder::kNoRow); }

  void linear(const std::string& ours, const std::vector<std::pair<std::string, std::string>>& theirs, int64_t outputs, int64_t inputs) {
    std::vector<Tensor> weights, biases;
    weights.reserve(theirs.size());
    biases.reserve(theirs.size());
    for (const auto& [weight, bias] : theirs) {
      weights.push_back(theirs_.take(weight, {inputs, outputs}).t());
      biases.push_back(theirs_.take(bias, {1, outputs}).view({-1}));
    }
    ours_[ours + ".weight"] = at::cat(weights).contiguous();
    ours_[ours + ".bias"] = at::cat(biases);
  }
  void norm(const std::string& ours, const std::string& theirs) {
    const char* const suffix = is_pre_ ? "_pre" : "";
    ours_[ours + ".gain"] = theirs_.take(theirs + "_ln_scale" + suffix, {1, d_}).view({-1});
    ours_[ours + ".bias"] = theirs_.take(theirs + "_ln_bias" + suffix, {1, d_}).view({-1});
  }
  void last_norm(const std::string& ours, const std::string& theirs) {
    ours_[ours + ".gain"] = theirs_.take(theirs + "scale", {1, d_}).view({-1});
    ours_[ours + ".bias"] = theirs_.take(theirs + "bias", {1, d_}).view({-1});
  }

  IncomingWeights& theirs_;
  const MarianSettings& settings_;
  int64_t d_;
  bool is_pre_;
  NamedTensors ours_;
};

/// Returns the name of the model's file.
std::string model_name(const IncomingFiles& files, const MarianSettings* decoder) {
  std::vector<std::string> names = decoder == nullptr ? std::vector<std::string>{} : decoder->list("models");
  for (std::string& name : names) name = std::filesystem::path(name).filename().string();
  if (names.empty())
    for (const std::string& name : files.names())
      if (name.ends_with(".npz") && !name.ends_with(".optimizer.npz") && !name.ends_with(".orig.npz")) names.push_back(name);
  if (names.size() == 1 && is_name_of_file(names.front())) return names.front();
  throw DataError(files.folder() + " has " + (names.empty() ? "no model" : "several models: " + join_first(names)) +
                  "; name the .npz file itself");
}

/// Reads an array that is text: the YAML ends in one NUL or several.
std::string yaml_of(const NpzArrays& arrays, const std::string& place) {
  const auto found = arrays.bytes.find(kModelYml);
  if (found == arrays.bytes.end())
    throw DataError(place + ": has no array " + kModelYml + ", the model's settings; expected an .npz file that Marian has written");
  return found->second.substr(0, found->second.find_last_not_of('\0') + 1);
}

}  // namespace

IncomingModel read_marian(IncomingFiles& files, std::string name, const ImportRequest& request) {
  std::optional<MarianSettings> decoder;
  const std::string beside = name + "." + kDecoderYml;  // as Marian writes it when it trains
  if (const std::string yml = !name.empty() && files.has(beside) ? beside : kDecoderYml; files.has(yml))
    decoder.emplace(files.text(yml, kMostSettings), files.path(yml));
  const MarianSettings* const search = decoder ? &*decoder : nullptr;
  if (name.empty()) name = model_name(files, search);
  NpzArrays arrays = read_npz(files.text(name, kMostModel), files.path(name));
  const MarianSettings settings(yaml_of(arrays, files.path(name)), files.path(name) + ": " + kModelYml);
  require_accepted(settings);
  IncomingModel model{"Marian", IncomingOptions(settings.place()), {}, {}};
  set_model(model.options, settings);
  if (search != nullptr) set_search(model.options, *search);
  const MarianVocabularies read = vocabularies_of_folder(files, search, request);
  IncomingWeights theirs(std::move(arrays.tensors), files.path(name));
  MarianArranger ours(theirs, settings);
  ours.add_tables(model.options, read);
  const int64_t inner = settings.number("transformer-dim-ffn");
  const int64_t of_decoder = settings.has("transformer-decoder-dim-ffn") ? settings.number("transformer-decoder-dim-ffn") : 0;
  ours.add_stack("encoder", settings.number("enc-depth"), inner);
  ours.add_stack("decoder", settings.number("dec-depth"), of_decoder > 0 ? of_decoder : inner);
  theirs.require_all_taken();
  model.weights = ours.take();
  model.vocabularies = read.vocabularies;
  for (const auto& [key, code] : {std::pair("src_lang", request.src_lang), {"tgt_lang", request.tgt_lang}})
    if (!code.empty()) model.options.set("data", key, code);
  return model;
}

}  // namespace lacuna
