#pragma once

#include <limits>
#include <memory>
#include <string>

#include "../base/scratch_folder.h"
#include "../model/small_model.h"
#include "analysis/analysis.h"
#include "config/yaml.h"

namespace lacuna {

/// Words a to t are tokens 3 to 22: as many as a small model knows.
inline Vocabularies words_a_to_t() {
  std::string tokens;
  for (char letter = 'a'; letter <= 't'; ++letter) tokens += std::string(1, letter) + "\n";
  const VocabularyPtr vocabulary = token_list_from_bytes(tokens, "letters");
  return {vocabulary, vocabulary};
}

/// A small model, not trained, with this attention.
inline std::shared_ptr<Transformer> small_model_with(const std::string& attention) {
  ModelOptions options = small_options();
  options.attention = parse_yaml_value(attention, "attention");
  return small_model(options);
}

/// A small model whose weights are NaN, as after a training that diverged.
inline std::shared_ptr<Transformer> small_model_of_nans() {
  const auto model = small_model_with("softmax");
  const at::NoGradGuard no_gradients;
  for (Tensor& parameter : model->parameters()) parameter.fill_(std::numeric_limits<double>::quiet_NaN());
  return model;
}

/// Texts to analyze: five pairs, one of them with an empty side.
struct SmallCorpus {
  ScratchFolder folder;
  AnalysisSettings settings;

  SmallCorpus() {
    settings.src = folder.write("src", "a b c\nd e\n\nf g h i j\nk\n");
    settings.tgt = folder.write("tgt", "b a\ne d d\nc\nj i h g\nl\n");
    settings.num_pairs = 5;
    settings.bootstrap_samples = 50;
  }

  ModelAnalysis analyze(Transformer& model) const {
    return analyze_model({"small", model, words_a_to_t()}, settings, [](int64_t) {});
  }
};

}  // namespace lacuna
