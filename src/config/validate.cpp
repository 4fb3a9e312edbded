#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/spelling.h"
#include "config/load.h"
#include "config/read_options.h"
#include "config/rules.h"

namespace lacuna {
namespace {

std::string equals(const std::string& key, int64_t value) {
  return key + " is " + std::to_string(value);
}

void validate_data(const DataOptions& data, const Rules& rules) {
  const std::vector<std::string> vocabularies = {"data.vocab", "data.src_vocab", "data.tgt_vocab"};
  rules.require(data.src_spm_model.empty() == data.tgt_spm_model.empty(), {"data.src_spm_model", "data.tgt_spm_model"},
                "data.src_spm_model and data.tgt_spm_model go together; only one of them is there");
  rules.require(data.spm_model.empty() || data.src_spm_model.empty(), {"data.spm_model"},
                "data.spm_model is for both sides; remove it or data.src_spm_model and data.tgt_spm_model");
  rules.require(data.src_vocab.empty() == data.tgt_vocab.empty(), {"data.src_vocab", "data.tgt_vocab"},
                "data.src_vocab and data.tgt_vocab go together; only one of them is there");
  const bool has_list = !data.vocab.empty() || !data.src_vocab.empty();
  if (data.tokenizer == Tokenizer::kNone) {
    rules.require(has_list, {"data.tokenizer"},
                  "data.tokenizer is \"none\"; it needs a vocabulary file: data.vocab, or data.src_vocab and data.tgt_vocab");
    rules.require(data.spm_alpha == 0, {"data.spm_alpha"},
                  "data.spm_alpha draws segmentations of a SentencePiece model; with data.tokenizer \"none\" it must be 0");
  } else {
    rules.require(!has_list, vocabularies,
                  "data.vocab is the vocabulary of text that is tokenized already; set data.tokenizer: none, or give data.spm_model");
  }
  rules.require(data.trains_vocabularies() || (data.spm_symbols.empty() && !data.spm_byte_fallback),
                {data.spm_symbols.empty() ? "data.spm_byte_fallback" : "data.spm_symbols"},
                "data.spm_symbols and data.spm_byte_fallback are of a SentencePiece model that is trained here; remove them, or "
                "data.spm_model, data.src_spm_model, or data.tokenizer: none");
  const DataOptions usual;
  const bool has_usual_rules = data.src_normalization == usual.src_normalization && data.tgt_normalization == usual.tgt_normalization;
  rules.require(
      data.trains_vocabularies() || has_usual_rules, {"data.src_normalization", "data.tgt_normalization"},
      "data.src_normalization and data.tgt_normalization are of a SentencePiece model that is trained here, and one that is named "
      "has rules of its own; remove them, or the model (lacuna vocab --normalization)");
  rules.require(
      data.max_length_ratio == 0 || data.max_length_ratio >= 1, {"data.max_length_ratio"},
      fmt::format("data.max_length_ratio is {}, which no pair is within; at least 1, say 4, or 0 for no bound", data.max_length_ratio));
}

bool is_line_of_text(const std::string& text) {
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7F; };
  return std::none_of(text.begin(), text.end(), is_control) && !first_invalid_utf8(text);
}

/// Checks one corpus. `key` is the key of its list, `item` its own: data.train[0].
void validate_corpus(const CorpusOptions& corpus, const std::string& key, const std::string& item, const Rules& rules) {
  const auto require = [&](bool holds, const std::string& option, const std::string& message) {
    const std::vector<std::string> here = {item + "." + option, key + "." + option, item, key};  // one of a list, or the only one
    rules.require(holds, here, key + ": " + message);
  };
  if (corpus.tsv.empty()) {
    require(!corpus.src.empty() && !corpus.tgt.empty(), "",
            fmt::format("a corpus needs both src and tgt, or tsv in place of them; src is \"{}\", tgt is \"{}\"", corpus.src, corpus.tgt));
    require(corpus.columns == CorpusOptions().columns, "columns",
            fmt::format("the columns of {} are not read, as they are those of a tsv; remove them, or name the file by tsv",
                        corpus.files_text()));
  } else {
    require(corpus.src.empty() && corpus.tgt.empty(), "tsv",
            fmt::format("tsv is \"{}\", which stands in place of src and tgt; remove it, or src \"{}\" and tgt \"{}\"", corpus.tsv,
                        corpus.src, corpus.tgt));
    require(corpus.columns.size() == 2, "columns",
            fmt::format("the columns of {} are {} numbers; expected two, source and target: [1, 2]", corpus.tsv, corpus.columns.size()));
  }
  require(corpus.min_score.column == 0 || (!corpus.tsv.empty() && key == "data.train"), "min_score",
          fmt::format("the min_score of {} is of a column of a tsv that trains; remove it", corpus.files_text()));
  require(!corpus.has_links() || key == "data.train", corpus.links.empty() ? "links_column" : "links",
          fmt::format("links of {} are of no use, as training alone reads links; remove them", corpus.files_text()));
  require(corpus.links_column == 0 || !corpus.tsv.empty(), "links_column",
          fmt::format("the links_column of {} is a column of a tsv; name a file of links by `links`", corpus.files_text()));
  require(corpus.links.empty() || (corpus.links_column == 0 && !corpus.stream), "links",
          fmt::format("links is \"{}\"; a stream's links, and those of a tsv with links_column, are a column of it: remove one of the two",
                      corpus.links));
  require(corpus.tsv != "-" || corpus.stream, "tsv",
          "tsv is \"-\", standard input, which is read once; training alone can take it so, by stream: true");
  require(
      !corpus.stream || (!corpus.tsv.empty() && key == "data.train"), "stream",
      fmt::format("{} is to be a stream, which is read once, as it comes; expected a training corpus in one pipe, {{tsv: \"-\", stream: "
                  "true}}",
                  corpus.files_text()));
  require(is_line_of_text(corpus.src_prefix), "src_prefix",
          fmt::format("the src_prefix of {} is \"{}\"; expected UTF-8 without tabs and line ends, such as <bt>", corpus.files_text(),
                      corpus.src_prefix));
}

void validate_corpora(const DataOptions& data, const Rules& rules) {
  constexpr double kMostWeight = 1e6;
  for (const auto& [key, corpora] : {std::pair("data.train", &data.train), {"data.valid", &data.valid}, {"data.test", &data.test}}) {
    for (size_t i = 0; i < corpora->size(); ++i) {
      const CorpusOptions& corpus = (*corpora)[i];
      const std::string item = fmt::format("{}[{}]", key, i);
      validate_corpus(corpus, key, item, rules);
      rules.require(corpora != &data.train || corpus.weight <= kMostWeight, {item + ".weight", key + std::string(".weight")},
                    fmt::format("data.train: the weight of {} is {:g}; at most a million", corpus.files_text(), corpus.weight));
    }
  }
}

/// Checks what a stream needs beside itself.
void validate_stream(const DataOptions& data, const Rules& rules) {
  const CorpusOptions* const stream = data.stream();
  if (stream == nullptr) return;
  rules.require(
      data.train.size() == 1, {"data.train"},
      fmt::format("data.train: {} is a stream, which ends training when it ends; expected no other corpus beside it: mix them in what "
                  "writes to the pipe",
                  stream->tsv));
  rules.require(
      !data.trains_vocabularies(), {"data.train"},
      fmt::format("data.train: {} is a stream, which is read once, and a vocabulary is made of the whole text; name one: data.spm_model "
                  "(lacuna vocab makes it)",
                  stream->tsv));
}

/// Returns the key that gives each side a vocabulary of its own, and advice how to share one; empty if it is shared.
std::pair<std::string, std::string> two_vocabularies(const DataOptions& data) {
  if (!data.src_spm_model.empty()) return {"data.src_spm_model", "give data.spm_model alone"};
  if (!data.src_vocab.empty()) return {"data.src_vocab", "give data.vocab alone"};
  if (data.shared_vocab || !data.spm_model.empty() || !data.vocab.empty()) return {};
  return {"data.shared_vocab", "data.shared_vocab: true"};
}

void validate_positions(const ModelOptions& model, const Rules& rules) {
  const bool is_sinusoidal = model.positions == Positions::kSinusoidal, is_paper = model.position_spacing == PositionSpacing::kPaper;
  rules.require(!is_sinusoidal || model.d_model % 2 == 0, {"model.d_model"},
                equals("model.d_model", model.d_model) + "; sinusoidal positions need an even one");
  rules.require(is_sinusoidal || is_paper, {"model.position_spacing", "model.positions"},
                "model.position_spacing is \"tensor2tensor\", and only sinusoidal positions have a spacing; remove it, or set "
                "model.positions: sinusoidal");
  rules.require(is_sinusoidal || model.position_start == 0, {"model.position_start", "model.positions"},
                equals("model.position_start", model.position_start) +
                    ", and only sinusoidal positions start elsewhere than at 0; remove it, or set model.positions: sinusoidal");
  const int64_t d_head = model.d_model / model.num_heads;
  rules.require(model.positions != Positions::kRope || d_head % 2 == 0, {"model.num_heads", "model.d_model"},
                "model.positions is \"rope\", which turns pairs of a head's features, and a head has model.d_model / model.num_heads = " +
                    std::to_string(d_head) + "; choose an even number");
  rules.require(is_paper || model.d_model >= 4, {"model.position_spacing", "model.d_model"},
                "model.position_spacing is \"tensor2tensor\", which divides by model.d_model / 2 - 1; " +
                    equals("model.d_model", model.d_model) + ", expected at least 4");
}

void validate_model(const ModelOptions& model, const DataOptions& data, const Rules& rules) {
  rules.require(model.d_model % model.num_heads == 0, {"model.num_heads", "model.d_model"},
                equals("model.num_heads", model.num_heads) + "; it must divide model.d_model, which is " + std::to_string(model.d_model));
  validate_positions(model, rules);
  const auto [key, way_to_one] = two_vocabularies(data);
  rules.require(model.tie_embeddings != TieEmbeddings::kAll || key.empty(), {"model.tie_embeddings", key},
                "model.tie_embeddings is \"all\", which needs one vocabulary for both sides; set it to decoder or none, or " + way_to_one);
}

/// Checks that a schedule that needs an end has one, after the warm-up.
void validate_schedule_end(const TrainOptions& train, const Rules& rules) {
  if (!train.schedule_needs_end()) return;
  const std::string schedule = write_options(train).find("schedule")->text();
  rules.require(train.schedule_end() > 0, {"train.schedule"},
                "train.schedule is \"" + schedule + "\", which falls until train.decay_steps or train.max_steps; set one of them");
  const std::string key = train.decay_steps > 0 ? "train.decay_steps" : "train.max_steps";
  const int64_t end = train.schedule_end();
  rules.require(train.warmup_steps.value_or(0) < end, {"train.warmup_steps", key},
                equals("train.warmup_steps", train.warmup_steps.value_or(0)) + "; expected fewer than " + key + ", which is " +
                    std::to_string(end) + " and ends the " + schedule + " schedule: lower the one or raise the other");
}

/// Checks that there is the head that links are to guide.
void validate_guided_alignment(const Options& options, const Rules& rules) {
  const GuidedAlignmentOptions& guided = options.train.guided_alignment;
  const ModelOptions& model = options.model;
  const int64_t layer = guided.layer.value_or(0);
  rules.require(
      layer < model.decoder_layers, {"train.guided_alignment.layer", "model.decoder_layers"},
      equals("train.guided_alignment.layer", layer) + "; the decoder's layers are 0 to " + std::to_string(model.decoder_layers - 1));
  rules.require(
      guided.head < model.num_heads, {"train.guided_alignment.head", "model.num_heads"},
      equals("train.guided_alignment.head", guided.head) + "; the heads of a layer are 0 to " + std::to_string(model.num_heads - 1));
}

void validate_training(const TrainOptions& train, const DataOptions& data, const Rules& rules) {
  validate_schedule_end(train, rules);
  rules.require(train.schedule != Schedule::kNoam || train.warmup_steps.value_or(1) > 0, {"train.warmup_steps"},
                "train.warmup_steps is 0; the noam schedule needs a warm-up");
  rules.require(train.schedule != Schedule::kPlateau || !data.valid.empty(), {"train.schedule"},
                "train.schedule is \"plateau\", which needs a validation set: data.valid");
  rules.require(train.patience.value_or(0) == 0 || !data.valid.empty(), {"train.patience"},
                equals("train.patience", train.patience.value_or(0)) + "; early stopping needs data.valid");
  const bool by_score = train.metric == ValidMetric::kBleu || train.metric == ValidMetric::kChrf;
  rules.require(!by_score || train.valid_translate, {"train.metric", "train.valid_translate"},
                "train.metric is a score of translations; set train.valid_translate: true, or train.metric: loss");
  const std::vector<std::string> parts = {"optimizer", "lr", "data", "best"};
  for (const std::string& part : train.reset)
    rules.require(std::find(parts.begin(), parts.end(), part) != parts.end(), {"train.reset"},
                  "train.reset holds \"" + part + "\"; known parts: " + join(parts) + did_you_mean(part, parts));
}

void validate_translation(const TranslateOptions& translate, const ModelOptions& model, const DataOptions& data, const Rules& rules) {
  rules.require(translate.joiner.empty() || data.tokenizer == Tokenizer::kNone, {"translate.joiner"},
                "translate.joiner is \"" + translate.joiner + "\"; it joins pieces of data.tokenizer: none, SentencePiece joins its own");
  const std::string trouble = joiner_error(translate.joiner);
  rules.require(trouble.empty(), {"translate.joiner"}, "translate.joiner is \"" + translate.joiner + "\"" + trouble);
  rules.require(translate.sampling != Sampling::kNone || translate.n_best <= translate.beam_size,
                {"translate.n_best", "translate.beam_size"},
                equals("translate.n_best", translate.n_best) + "; at most translate.beam_size, which is " +
                    std::to_string(translate.beam_size) + ": raise that");
  rules.require(translate.min_length <= translate.max_length, {"translate.min_length", "translate.max_length"},
                equals("translate.min_length", translate.min_length) + "; at most translate.max_length, which is " +
                    std::to_string(translate.max_length));
  rules.require(model.positions != Positions::kLearned || translate.min_length <= model.max_positions, {"translate.min_length"},
                equals("translate.min_length", translate.min_length) + "; at most model.max_positions, which is " +
                    std::to_string(model.max_positions) + ", as the model's positions are learned");
}

/// 0 to 999, as LibTorch takes it: without leading zeros.
bool is_device_number(const std::string& text) {
  if (text.empty() || text.size() > 3 || text.find_first_not_of("0123456789") != std::string::npos) return false;
  return text == "0" || text.front() != '0';
}

}  // namespace

void refuse_oversights(const Options& options, const ConfigNode& tree) {
  const Rules rules(tree);
  rules.require(options.run != "~" && !options.run.starts_with("~/"), {"run"},
                "run is \"" + options.run + "\", and ~ is no folder here; write ${HOME}" +
                    options.run.substr(std::min<size_t>(1, options.run.size())));
  const DataOptions& data = options.data;
  for (const auto& [key, model] : {std::pair("data.spm_model", &data.spm_model), {"data.src_spm_model", &data.src_spm_model}})
    rules.require(data.tokenizer != Tokenizer::kNone || model->empty(), {key},
                  "data.tokenizer is \"none\", with which the SentencePiece model " + *model +
                      " is not read; remove it, or set data.tokenizer: sentencepiece and remove the vocabulary");
  rules.require(data.vocab.empty() || data.src_vocab.empty(), {"data.vocab"},
                "data.vocab is for both sides; remove it or data.src_vocab and data.tgt_vocab");
}

void validate_device(const std::string& device, const std::string& key) {
  const bool is_cuda = device == "cuda" || (device.starts_with("cuda:") && is_device_number(device.substr(5)));
  if (device == "cpu" || is_cuda) return;
  throw ConfigError(key + " is \"" + device + "\"; expected cpu, cuda or cuda:N, where N is 0 to 999");
}

void validate_symbols(const std::vector<std::string>& symbols, const std::string& key) {
  std::set<std::string> known = {"<unk>", "<s>", "</s>"};
  for (const std::string& symbol : symbols) {
    const auto refuse = [&](const char* what) { throw ConfigError(key + " holds \"" + symbol + "\", " + what); };
    if (symbol.empty()) refuse("which is empty; expected a piece such as <bt>");
    if (symbol.find_first_of(" \t\r\n,\"") != std::string::npos || first_invalid_utf8(symbol))
      refuse("which cannot be a piece; expected UTF-8 without blanks, commas and quotes, such as <bt>");
    if (symbol.starts_with("<0x")) refuse("which may be the name of a byte");
    if (!known.insert(symbol).second) refuse("which the vocabulary has anyway, or which is there twice");
  }
}

void validate(const Options& options, const ConfigNode& tree) {
  const Rules rules(tree);
  validate_device(options.device, rules.place({"device"}) + "device");
  validate_symbols(options.data.spm_symbols, rules.place({"data.spm_symbols"}) + "data.spm_symbols");
  validate_data(options.data, rules);
  validate_corpora(options.data, rules);
  validate_stream(options.data, rules);
  validate_model(options.model, options.data, rules);
  validate_training(options.train, options.data, rules);
  validate_guided_alignment(options, rules);
  validate_translation(options.translate, options.model, options.data, rules);
}

}  // namespace lacuna
