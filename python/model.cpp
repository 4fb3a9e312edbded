#include "model.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <omp.h>

#include <algorithm>
#include <utility>

#include "analysis/explored_sentence.h"
#include "analysis/pair_scores.h"
#include "analysis/weight_gatherer.h"
#include "base/error.h"
#include "base/resources.h"
#include "config/load.h"
#include "config/read_options.h"
#include "kernels/parallel.h"
#include "text/invisible_characters.h"

namespace lacuna::python {
namespace {

using OptionList = std::vector<std::pair<std::string, ConfigNode>>;

/// Gives the calling thread so many threads for its operations, and what it had before at the end. The process and its other threads,
/// which may use LibTorch for something else, keep theirs.
class ThreadsOfThisCall {
 public:
  explicit ThreadsOfThisCall(int threads) : before_(at::get_num_threads()) { omp_set_num_threads(threads); }
  ~ThreadsOfThisCall() { omp_set_num_threads(before_); }
  ThreadsOfThisCall(const ThreadsOfThisCall&) = delete;
  ThreadsOfThisCall& operator=(const ThreadsOfThisCall&) = delete;

 private:
  int before_;
};

/// The number of threads that `threads` means, and LibTorch's functions settled for them.
int settled(int64_t threads) {
  settle_vector_functions();
  return threads > 0 ? static_cast<int>(threads) : num_cores();
}

void require_device(const std::string& device) {
  validate_device(device);
#ifndef LACUNA_CUDA
  if (device != "cpu")
    throw ConfigError(
        "device is \"" + device +
        "\"; this package was built for the CPU only: build it where nvcc and a LibTorch with CUDA are, or expect device cpu");
#endif
}

/// Throws ConfigError for a precision that the device does not have.
void require_precision(Precision precision, const std::string& device) {
  if (device == "cpu" || precision == Precision::kAuto || precision == Precision::kFp32) return;
  throw ConfigError(std::string("precision is \"") + name_of(precision) + "\", which is of products on the CPU, and the model is on " +
                    device + "; expected fp32 or auto, or device cpu");
}

/// Returns the model's options of `translate` with changes, each of which is a key of that section.
Options changed(Options options, const OptionList& changes) {
  ConfigNode given = ConfigNode::map(changes);
  given.set_path("");
  read_options(given, options.translate);
  validate(options, ConfigNode());
  return options;
}

/// The words of a command line that mean the same, for functions that look there for what was asked for.
std::vector<std::string> words_of(const OptionList& changes) {
  std::vector<std::string> words;
  words.reserve(changes.size());
  for (const auto& change : changes) words.push_back("--translate." + change.first);
  return words;
}

/// Throws DataError for a text that is no sentence. `name` is "texts[3]".
void require_sentence(const std::string& text, const std::string& name) {
  if (text.find_first_of("\n\r") != std::string::npos)
    throw DataError(name + " holds a line break; expected one sentence: split the text, or put a space in its place");
  if (text.find('\0') != std::string::npos) throw DataError(name + " holds a NUL character; expected text");
}

std::string item(const std::string& list, size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

/// Copies a call's weights of a sentence into those of its site.
void keep(const CallWeights& call, int64_t sentence, SiteAttention& site) {
  const WeightMatrix shape = call.weights.matrix(sentence, 0);
  const int64_t size = call.num_heads * shape.queries * shape.keys;
  site.heads = call.num_heads;
  site.queries = shape.queries;
  site.keys = shape.keys;
  site.layers = std::max<int64_t>(site.layers, call.layer + 1);
  site.weights.resize(static_cast<size_t>(site.layers * size));
  std::copy_n(shape.values, size, site.weights.begin() + call.layer * size);  // the heads of a sentence stand end to end
}

SiteAttention& site_of(ForcedPair& pair, AttentionSite site) {
  if (site == AttentionSite::kCross) return pair.cross;
  return site == AttentionSite::kEncoderSelf ? pair.encoder_self : pair.decoder_self;
}

}  // namespace

Model::Model(const std::string& path, const std::string& device, const OptionList& options, int64_t threads) : threads_(settled(threads)) {
  if (threads < 0 || threads > 1024)
    throw ConfigError("threads is " + std::to_string(threads) + "; expected a number from 0 to 1024, 0 = all cores");
  require_device(device);
  const ThreadsOfThisCall used(threads_);
  loaded_ = load_model_to_translate(path, device, {}, changed(options_of_checkpoint(path, {}), options).translate.precision);
  loaded_.options = changed(std::move(loaded_.options), options);
  restrict_search(loaded_.options.translate, path, words_of(options));
  const TranslateOptions& translate = loaded_.options.translate;
  require_precision(translate.precision, device);
  if (!translate.shortlist.empty()) shortlist_ = read_shortlist(translate.shortlist, loaded_.vocabularies);
}

std::vector<TokenId> Model::tokens_of(const Vocabulary& vocabulary, const std::string& text, const std::string& name) const {
  require_sentence(text, name);
  std::vector<TokenId> ids = vocabulary.encode(text);
  if (!ids.empty()) ids.push_back(kEos);
  const int64_t positions = loaded_.model->max_positions(),
                most = positions > 0 ? std::min(positions, kMostSourceTokens) : kMostSourceTokens;
  if (std::ssize(ids) > most)
    throw DataError(name + " has " + std::to_string(ids.size()) + " tokens; expected at most " + std::to_string(most) +
                    ", which the model can read: split the text");
  return ids;
}

std::vector<Translated> Model::translate(const TranslateRequest& request, const Look& look) const {
  for (const auto& [key, value] : request.options)
    for (const char* of_model : {"precision", "shortlist", "joiner"})
      if (key == of_model) throw ConfigError(key + " is of the whole model: expected among the arguments of Translator(...)");
  const at::NoGradGuard no_gradients;
  const ThreadsOfThisCall used(threads_);
  const TranslateOptions options = changed(loaded_.options, request.options).translate;
  AlignmentSource source = loaded_.options.alignment_source();
  if (options.guard != Guard::kNone) source = {std::max(0, static_cast<int>(loaded_.options.model.decoder_layers) - 2), -1};
  TranslatorSettings settings{options, request.alignment, source.layer, request.seed, shortlist_};
  settings.alignment_head = source.head;
  settings.look = look;
  Translator translator(std::make_shared<TransformerStepModel>(loaded_.model), loaded_.vocabularies, std::move(settings));
  std::vector<TranslationInput> inputs;
  inputs.reserve(request.texts.size());
  for (size_t i = 0; i < request.texts.size(); ++i) {
    require_sentence(request.texts[i].text, item("texts", i));
    require_sentence(request.texts[i].prefix, item("prefix", i));
    inputs.push_back({request.texts[i].text, request.texts[i].prefix, static_cast<int64_t>(i)});
  }
  std::vector<TranslatedLine> lines = translator.translate(inputs);
  std::vector<Translated> result(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    TranslatedLine unused;
    result[i].src = translator.prepared(inputs[i], unused).src;
    result[i].line = std::move(lines[i]);
  }
  if (request.attention) add_attention(result, look);
  return result;
}

/// Adds the cross attention of each translation, by forced decoding.
void Model::add_attention(std::vector<Translated>& lines, const Look& look) const {
  std::vector<IdPair> pairs;
  for (size_t i = 0; i < lines.size(); ++i) {
    for (const Translation& translation : lines[i].line.translations) {
      if (lines[i].src.empty()) continue;
      IdPair& pair = pairs.emplace_back(IdPair{lines[i].src, translation.tokens});
      pair.tgt.push_back(kEos);
      if (const auto longest = std::max(pair.src.size(), pair.tgt.size()); std::cmp_greater(longest, kMostToLookAt))
        throw DataError(item("texts", i) + " or its translation has " + std::to_string(longest) + " tokens; attention is given of " +
                        std::to_string(kMostToLookAt) + " at most: split the text");
    }
  }
  auto next = pairs.empty() ? std::vector<ForcedPair>() : forced(std::move(pairs), Forced::kCross, look);
  auto pair = next.begin();
  for (Translated& line : lines)
    for (size_t i = 0; i < line.line.translations.size() && !line.src.empty(); ++i) line.cross.push_back(std::move((pair++)->cross));
}

std::vector<ForcedPair> Model::force(const std::vector<std::pair<std::string, std::string>>& pairs, Forced wanted, const Look& look) const {
  const ThreadsOfThisCall used(threads_);
  std::vector<IdPair> ids(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    ids[i].src = tokens_of(src(), source_text(src(), pairs[i].first), item("src", i));
    ids[i].tgt = tokens_of(tgt(), pairs[i].second, item("tgt", i));
    if (ids[i].tgt.empty()) ids[i].tgt = {kEos};  // an empty translation is one, too
    if (wanted == Forced::kLogProbs) continue;
    if (const auto longest = std::max(ids[i].src.size(), ids[i].tgt.size()); std::cmp_greater(longest, kMostToLookAt))
      throw DataError(item("src", i) + " or " + item("tgt", i) + " has " + std::to_string(longest) + " tokens; attention is given of " +
                      std::to_string(kMostToLookAt) + " at most: split the text");
  }
  return forced(std::move(ids), wanted, look);
}

std::vector<ForcedPair> Model::forced(std::vector<IdPair> ids, Forced wanted, const Look& look) const {
  std::vector<ForcedPair> result(ids.size());
  std::vector<SentencePair> pairs(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    pairs[i].src = result[i].src = std::move(ids[i].src);
    pairs[i].tgt = result[i].tgt = std::move(ids[i].tgt);
  }
  const at::NoGradGuard no_gradients;
  for (const auto& batch : batches_of(pairs, loaded_.options.translate.batch_tokens)) {
    if (look) look();
    const auto of_batch = [&](size_t b) -> ForcedPair& { return result[static_cast<size_t>(batch[b] - pairs.data())]; };
    const auto observe = [&](const CallWeights& call) {
      for (size_t b = 0; b < batch.size(); ++b) keep(call, static_cast<int64_t>(b), site_of(of_batch(b), call.site));
    };
    const auto is_wanted = [wanted](int /*layer*/, AttentionSite site) {
      return wanted == Forced::kAllSites || site == AttentionSite::kCross;
    };
    const RaggedPairs shapes = ragged_pairs(batch, at::kCPU);
    WeightGatherer gatherer(*shapes.src.shape, *shapes.tgt.shape, loaded_.options.model.num_heads, false, observe, is_wanted);
    std::vector<std::vector<float>> log_probs = token_log_probs(*loaded_.model, batch, wanted == Forced::kLogProbs ? nullptr : &gatherer);
    for (size_t b = 0; b < batch.size(); ++b) of_batch(b).log_probs = std::move(log_probs[b]);
  }
  return result;
}

std::vector<std::vector<float>> Model::encode(const std::vector<std::string>& texts, const Look& look) const {
  const ThreadsOfThisCall used(threads_);
  std::vector<SentencePair> sources(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    sources[i].src = tokens_of(src(), source_text(src(), texts[i]), item("texts", i));
    sources[i].tgt = {kEos};  // so that it counts as a pair
  }
  const at::NoGradGuard no_gradients;
  std::vector<std::vector<float>> result(texts.size());
  for (const auto& batch : batches_of(sources, loaded_.options.translate.batch_tokens)) {
    if (look) look();
    const Ragged tokens = ragged_pairs(batch, loaded_.model->device()).src;
    const Tensor states = loaded_.model->encode(tokens, {}).values.to(at::kCPU, at::kFloat).contiguous();  // (Ts, D)
    const float* next = states.const_data_ptr<float>();
    for (const SentencePair* source : batch) {
      const float* const end = next + std::ssize(source->src) * states.size(1);
      result[static_cast<size_t>(source - sources.data())].assign(std::exchange(next, end), end);
    }
  }
  return result;
}

std::vector<std::string> Model::pieces(const std::string& text, Side side) const {
  require_sentence(text, "a text");
  return side == Side::kSrc ? pieces_of(src(), src().encode(source_text(src(), text))) : pieces_of(tgt(), tgt().encode(text));
}

}  // namespace lacuna::python
