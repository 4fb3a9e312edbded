#include "serve/cross_attention.h"

#include <ATen/core/grad_mode.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "analysis/pair_scores.h"
#include "analysis/word_weights.h"
#include "text/invisible_characters.h"
#include "text/joiner.h"

namespace lacuna::serve {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kMostWeights = 1 << 19;  // of all translations of a line, between pieces: some megabytes of JSON

/// Returns the words of a text that is cut at spaces, as many as its tokens know of.
std::vector<std::string> words_of(const std::string& text, int32_t count) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  words.resize(static_cast<size_t>(count));
  return words;
}

/// Appends the weights of a layer between words.
void add_layer(const CallWeights& call, int64_t sentence, const AlignmentUnits& units, CrossAttention& attention) {
  attention.layers = call.layer + 1;
  attention.heads = call.num_heads;
  attention.weights.reserve(attention.weights.size() + static_cast<size_t>(call.num_heads * units.tgt_count * units.src_count));
  const std::vector<UnitWeights> heads = unit_weights_of_heads(call, sentence, units, AlignmentStep::kNormal);
  for (int64_t head = 0; head < call.num_heads; ++head)
    for (int32_t tgt = 0; tgt < units.tgt_count; ++tgt)
      for (int32_t src = 0; src < units.src_count; ++src)
        attention.weights.push_back(static_cast<float>(heads[static_cast<size_t>(head)].at(tgt, src)));
}

/// Returns the translations as pairs of their source; none if looking at them would take too much.
std::vector<SentencePair> pairs_to_look_at(const ServedModel& model, const TranslationInput& line, const TranslatedLine& translated) {
  TranslatedLine unused;
  SentencePair pair;
  pair.src_text = source_text(*model.vocabularies.src, line.text);
  pair.src = model.translator->translator().prepared(line, unused).src;
  std::vector<SentencePair> pairs;
  pairs.reserve(translated.translations.size());
  int64_t weights = 0;
  for (const Translation& one : translated.translations) {
    pair.tgt = one.tokens;
    pair.tgt_text = model.vocabularies.tgt->decode(pair.tgt);
    pair.tgt.push_back(kEos);
    weights += std::ssize(pair.src) * std::ssize(pair.tgt);
    pairs.push_back(pair);
  }
  const ModelOptions& options = model.transformer->options();
  const bool is_small = weights * options.decoder_layers * options.num_heads <= kMostWeights;
  if (pair.src.empty() || !is_small) pairs.clear();
  return pairs;
}

}  // namespace

Attentions attention_of(const ServedModel& model, const TranslationInput& line, const TranslatedLine& translated) {
  const std::vector<SentencePair> pairs = pairs_to_look_at(model, line, translated);
  Attentions all(translated.translations.size());
  if (pairs.empty()) return all;
  const at::NoGradGuard no_gradients;
  std::vector<const SentencePair*> batch;
  std::vector<AlignmentUnits> units;
  std::vector<std::shared_ptr<CrossAttention>> found;
  batch.reserve(pairs.size());
  units.reserve(pairs.size());
  found.reserve(pairs.size());
  const std::string& joiner = model.options.joiner;
  for (const SentencePair& pair : pairs) {
    batch.push_back(&pair);
    units.push_back(word_units(pair, model.vocabularies, joiner));
    found.push_back(std::make_shared<CrossAttention>());
    found.back()->src = words_of(joined(pair.src_text, joiner), units.back().src_count);
    found.back()->tgt = words_of(joined(pair.tgt_text, joiner), units.back().tgt_count);
  }
  const auto observe = [&](const CallWeights& call) {
    for (size_t b = 0; b < pairs.size(); ++b) add_layer(call, static_cast<int64_t>(b), units[b], *found[b]);
  };
  const auto is_cross = [](int /*layer*/, AttentionSite site) { return site == AttentionSite::kCross; };
  const RaggedPairs shapes = ragged_pairs(batch, at::kCPU);
  WeightGatherer gatherer(*shapes.src.shape, *shapes.tgt.shape, model.transformer->options().num_heads, false, observe, is_cross);
  token_log_probs(*model.transformer, batch, &gatherer);
  std::ranges::copy(found, all.begin());
  return all;
}

ordered_json attention_json(const CrossAttention* attention) {
  if (attention == nullptr) return nullptr;
  const auto rounded = [](float weight) { return std::strtod(fmt::format("{:.4g}", weight).c_str(), nullptr); };
  ordered_json layers = ordered_json::array();
  const float* next = attention->weights.data();
  for (int64_t layer = 0; layer < attention->layers; ++layer) {
    ordered_json& heads = layers.emplace_back(ordered_json::array());
    for (int64_t head = 0; head < attention->heads; ++head) {
      ordered_json& rows = heads.emplace_back(ordered_json::array());
      for (size_t tgt = 0; tgt < attention->tgt.size(); ++tgt) {
        ordered_json& row = rows.emplace_back(ordered_json::array());
        for (size_t src = 0; src < attention->src.size(); ++src) row.push_back(rounded(*next++));
      }
    }
  }
  return {{"source", attention->src}, {"target", attention->tgt}, {"weights", std::move(layers)}};
}

}  // namespace lacuna::serve
