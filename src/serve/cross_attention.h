#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/catalog.h"

namespace lacuna::serve {

/// The cross attention of a translation, between words: a source word's weight is the sum over its pieces, a target word's the mean.
struct CrossAttention {
  std::vector<std::string> src, tgt;  ///< the words
  int64_t layers = 0, heads = 0;
  std::vector<float> weights;  ///< [layers, heads, target words, source words]; 0 where all pieces have exactly 0
};

/// The attention of each translation of a line; null where that would be too large.
using Attentions = std::vector<std::shared_ptr<const CrossAttention>>;

/// Returns the attention of a line's translations, which must have their tokens, by forced decoding. To be called where the model
/// searches.
Attentions attention_of(const ServedModel& model, const TranslationInput& line, const TranslatedLine& translated);

/// Returns an attention as {"source": words, "target": words, "weights": [layer][head][target][source]}, or null.
nlohmann::ordered_json attention_json(const CrossAttention* attention);

}  // namespace lacuna::serve
