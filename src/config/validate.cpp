#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/spelling.h"
#include "config/load.h"
#include "config/read_options.h"

namespace lacuna {
namespace {

void require(bool holds, const std::string& message) {
  if (!holds) throw ConfigError(message);
}

std::string equals(const std::string& key, int64_t value) {
  return key + " is " + std::to_string(value);
}

void validate_data(const DataOptions& data) {
  require(data.src_spm_model.empty() == data.tgt_spm_model.empty(),
          "data.src_spm_model and data.tgt_spm_model go together; only one of them is there");
  require(data.spm_model.empty() || data.src_spm_model.empty(),
          "data.spm_model is for both sides; remove it or data.src_spm_model and data.tgt_spm_model");
  require(data.src_vocab.empty() == data.tgt_vocab.empty(), "data.src_vocab and data.tgt_vocab go together; only one of them is there");
  const bool has_list = !data.vocab.empty() || !data.src_vocab.empty();
  if (data.tokenizer == Tokenizer::kNone) {
    require(has_list, "data.tokenizer is \"none\"; it needs a vocabulary file: data.vocab, or data.src_vocab and data.tgt_vocab");
    require(data.spm_alpha == 0, "data.spm_alpha draws segmentations of a SentencePiece model; with data.tokenizer \"none\" it must be 0");
  } else {
    require(!has_list, "data.vocab is the vocabulary of text that is tokenised already; set data.tokenizer: none, or give data.spm_model");
  }
  require(data.trains_vocabularies() || (data.spm_symbols.empty() && !data.spm_byte_fallback),
          "data.spm_symbols and data.spm_byte_fallback are of a SentencePiece model that is trained here; remove them, or data.spm_model, "
          "data.src_spm_model, or data.tokenizer: none");
  require(data.max_length_ratio == 0 || data.max_length_ratio >= 1,
          fmt::format("data.max_length_ratio is {}, which no pair is within; at least 1, say 4, or 0 for no bound", data.max_length_ratio));
  for (const auto& [key, corpora] : {std::pair("train", &data.train), {"valid", &data.valid}, {"test", &data.test}})
    for (const CorpusOptions& corpus : *corpora)
      require(!corpus.src.empty() && !corpus.tgt.empty(), std::string("data.") + key + ": a corpus needs both src and tgt; src is \"" +
                                                              corpus.src + "\", tgt is \"" + corpus.tgt + "\"");
  constexpr double kMostWeight = 1e6;
  for (const CorpusOptions& corpus : data.train)
    require(corpus.weight <= kMostWeight,
            "data.train: the weight of " + corpus.src + " is " + std::to_string(corpus.weight) + "; at most a million");
}

void validate_model(const ModelOptions& model, const DataOptions& data) {
  require(model.d_model % model.num_heads == 0,
          equals("model.num_heads", model.num_heads) + "; it must divide model.d_model, which is " + std::to_string(model.d_model));
  require(model.positions != Positions::kSinusoidal || model.d_model % 2 == 0,
          equals("model.d_model", model.d_model) + "; sinusoidal positions need an even one");
  const bool two_vocabularies =
      !data.src_spm_model.empty() || !data.src_vocab.empty() || (!data.shared_vocab && data.spm_model.empty() && data.vocab.empty());
  require(
      model.tie_embeddings != TieEmbeddings::kAll || !two_vocabularies,
      "model.tie_embeddings is \"all\", which needs one vocabulary for both sides; set it to decoder or none, or data.shared_vocab: true");
}

/// linear and cosine have an end, and it comes after the warm-up.
void validate_schedule_end(const TrainOptions& train) {
  if (train.schedule != Schedule::kLinear && train.schedule != Schedule::kCosine) return;
  const std::string schedule = train.schedule == Schedule::kLinear ? "linear" : "cosine";
  require(train.schedule_end() > 0,
          "train.schedule is \"" + schedule + "\", which falls until train.decay_steps or train.max_steps; set one of them");
  const std::string key = train.decay_steps > 0 ? "train.decay_steps" : "train.max_steps";
  const int64_t end = train.schedule_end();
  require(train.warmup_steps < end, equals("train.warmup_steps", train.warmup_steps) + "; expected fewer than " + key + ", which is " +
                                        std::to_string(end) + " and ends the " + schedule + " schedule: lower the one or raise the other");
}

void validate_training(const TrainOptions& train, const DataOptions& data) {
  validate_schedule_end(train);
  require(train.schedule != Schedule::kNoam || train.warmup_steps > 0, "train.warmup_steps is 0; the noam schedule needs a warm-up");
  require(train.schedule != Schedule::kPlateau || !data.valid.empty(),
          "train.schedule is \"plateau\", which needs a validation set: data.valid");
  require(train.patience == 0 || !data.valid.empty(), equals("train.patience", train.patience) + "; early stopping needs data.valid");
  const bool by_score = train.metric == ValidMetric::kBleu || train.metric == ValidMetric::kChrf;
  require(!by_score || train.valid_translate,
          "train.metric is a score of translations; set train.valid_translate: true, or train.metric: loss");
  const std::vector<std::string> parts = {"optimizer", "lr", "data", "best"};
  for (const std::string& part : train.reset)
    require(std::find(parts.begin(), parts.end(), part) != parts.end(),
            "train.reset holds \"" + part + "\"; known parts: " + join(parts) + did_you_mean(part, parts));
}

void validate_translation(const TranslateOptions& translate, const ModelOptions& model, const DataOptions& data) {
  require(translate.joiner.empty() || data.tokenizer == Tokenizer::kNone,
          "translate.joiner is \"" + translate.joiner + "\"; it joins pieces of data.tokenizer: none, SentencePiece joins its own");
  const std::string trouble = trouble_of_joiner(translate.joiner);
  require(trouble.empty(), "translate.joiner is \"" + translate.joiner + "\"" + trouble);
  require(translate.sampling != Sampling::kNone || translate.n_best <= translate.beam_size,
          equals("translate.n_best", translate.n_best) + "; at most translate.beam_size, which is " + std::to_string(translate.beam_size) +
              ": raise that");
  require(translate.min_length <= translate.max_length, equals("translate.min_length", translate.min_length) +
                                                            "; at most translate.max_length, which is " +
                                                            std::to_string(translate.max_length));
  require(model.positions != Positions::kLearned || translate.min_length <= model.max_positions,
          equals("translate.min_length", translate.min_length) + "; at most model.max_positions, which is " +
              std::to_string(model.max_positions) + ", as the model's positions are learned");
}

/// 0 to 999, as LibTorch takes it: without leading zeros.
bool is_device_number(const std::string& text) {
  if (text.empty() || text.size() > 3 || text.find_first_not_of("0123456789") != std::string::npos) return false;
  return text == "0" || text.front() != '0';
}

}  // namespace

void refuse_oversights(const Options& options) {
  require(options.run != "~" && !options.run.starts_with("~/"), "run is \"" + options.run + "\", and ~ is no folder here; write ${HOME}" +
                                                                    options.run.substr(std::min<size_t>(1, options.run.size())));
  const DataOptions& data = options.data;
  for (const std::string* model : {&data.spm_model, &data.src_spm_model})
    require(data.tokenizer != Tokenizer::kNone || model->empty(),
            "data.tokenizer is \"none\", with which the SentencePiece model " + *model +
                " is not read; remove it, or set data.tokenizer: sentencepiece and remove the vocabulary");
  require(data.vocab.empty() || data.src_vocab.empty(), "data.vocab is for both sides; remove it or data.src_vocab and data.tgt_vocab");
}

void validate_device(const std::string& device) {
  const bool is_cuda = device == "cuda" || (device.starts_with("cuda:") && is_device_number(device.substr(5)));
  require(device == "cpu" || is_cuda, "device is \"" + device + "\"; expected cpu, cuda or cuda:N, where N is 0 to 999");
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

void validate(const Options& options) {
  validate_device(options.device);
  validate_symbols(options.data.spm_symbols, "data.spm_symbols");
  validate_data(options.data);
  validate_model(options.model, options.data);
  validate_training(options.train, options.data);
  validate_translation(options.translate, options.model, options.data);
}

}  // namespace lacuna
