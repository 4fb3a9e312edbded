#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attention/probe.h"
#include "checkpoint/checkpoint.h"
#include "config/config_node.h"
#include "search/translator.h"

/// What the Python package does, without Python.
namespace lacuna::python {

/// Called often while something is computed, by any thread; it may throw to end the work.
using Look = std::function<void()>;

/// A text to translate, and what the translation must begin with.
struct Text {
  std::string text, prefix;
};

/// The attention of one pair at one site: weights [layers, heads, queries, keys], NaN where a query does not see a key.
struct SiteAttention {
  int64_t layers = 0, heads = 0, queries = 0, keys = 0;
  std::vector<float> weights = {};
};

/// A given pair as the model reads it, by forced decoding.
struct ForcedPair {
  std::vector<TokenId> src, tgt;  ///< with eos
  std::vector<float> log_probs;   ///< of each target token, in nats
  SiteAttention encoder_self, decoder_self, cross;
};

/// What is wanted of a pair.
enum class Forced { kLogProbs, kCross, kAllSites };

/// One translation, best or not, and what was asked for beside it.
struct Translated {
  TranslatedLine line;
  std::vector<TokenId> src;               ///< with eos; empty for an empty text
  std::vector<SiteAttention> cross = {};  ///< of each translation, if asked for
};

/// How texts are translated.
struct TranslateRequest {
  std::vector<Text> texts;
  std::vector<std::pair<std::string, ConfigNode>> options;  ///< keys of `translate` that differ from the model's
  AlignmentLevel alignment = AlignmentLevel::kNone;
  bool attention = false;
  uint64_t seed = 1;
};

/// A model that was loaded to translate. Its functions may be called by several threads at once.
class Model {
 public:
  /// Loads a checkpoint or run folder. `options` are keys of `translate`. Throws what load_model() throws.
  Model(const std::string& path, const std::string& device, const std::vector<std::pair<std::string, ConfigNode>>& options,
        int64_t threads);

  std::vector<Translated> translate(const TranslateRequest& request, const Look& look) const;
  /// Makes the decoder say the targets. An empty source has no log-probabilities and no attention; an empty target is eos alone.
  std::vector<ForcedPair> force(const std::vector<std::pair<std::string, std::string>>& pairs, Forced wanted, const Look& look) const;
  /// Returns the encoder's output [tokens with eos, D] of each text, row by row; nothing of an empty one.
  std::vector<std::vector<float>> encode(const std::vector<std::string>& texts, const Look& look) const;

  /// Returns the pieces of a text on one side, without eos.
  std::vector<std::string> pieces(const std::string& text, Side side) const;

  const Vocabulary& src() const { return *loaded_.vocabularies.src; }
  const Vocabulary& tgt() const { return *loaded_.vocabularies.tgt; }
  const Options& options() const { return loaded_.options; }

 private:
  struct IdPair {
    std::vector<TokenId> src, tgt;
  };
  std::vector<ForcedPair> forced(std::vector<IdPair> pairs, Forced wanted, const Look& look) const;
  void add_attention(std::vector<Translated>& lines, const Look& look) const;
  std::vector<TokenId> tokens_of(const Vocabulary& vocabulary, const std::string& text, const std::string& name) const;

  LoadedModel loaded_;
  std::shared_ptr<const Shortlist> shortlist_;
  int threads_;
};

}  // namespace lacuna::python
