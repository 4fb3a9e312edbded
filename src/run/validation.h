#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/attention_statistics.h"
#include "config/options.h"
#include "data/evaluation_set.h"
#include "data/training_data.h"
#include "metrics/sacrebleu.h"
#include "model/transformer.h"
#include "ranks/group.h"
#include "search/step_model.h"
#include "train/trainer.h"

namespace lacuna {

/// Loads sets to score. Throws what load_evaluation_set throws; warns of a target side that BLEU would not find words in.
std::vector<EvaluationSet> load_evaluation_sets(const std::vector<CorpusOptions>& corpora, const DataOptions& options,
                                                const TrainingData& data);

/// Returns sacreBLEU, if validation or test sets are translated. Throws what find_sacrebleu and require_tokenizer throw.
std::optional<Scorer> find_scorer(const Options& options);

/// The scores of a model on one set.
struct Evaluation {
  std::string name;
  Scores scores;  ///< "loss" (unsmoothed nats per target token), "ppl", "accuracy" (of the best guess at each token), "bleu", "chrf"
  std::vector<std::string> hypotheses;  ///< if it was translated
  std::string signature;                ///< of BLEU, if it was translated
};

/// Scores a model on sets of sentences: by its loss, and by beam search and sacreBLEU. If an interruption comes, there is no result. The
/// batches and lines of a set are dealt out to all ranks, and what these find is put together in the order of the set: scores are the same
/// for any number of ranks.
class Validator {
 public:
  /// `scorer` is needed only where sets are translated, at rank 0.
  Validator(std::shared_ptr<Transformer> model, Vocabularies vocabularies, const Options& options, std::optional<Scorer> scorer,
            Group& group);

  /// Returns the same scores at all ranks, but hypotheses at rank 0 alone. Throws DivergedError if a set is to be translated and its loss
  /// is not finite. Collective.
  std::optional<Evaluation> evaluate(const EvaluationSet& set, const TranslateOptions& search, bool translates) const;
  /// Summarizes the attention of every layer and site: sparsity, entropy and null rate on the set's first 16,384 target tokens or so, and
  /// learned numbers.
  AttentionSummary attention_summary(const EvaluationSet& set) const;

 private:
  std::optional<Scores> forced_scores(const EvaluationSet& set) const;
  std::optional<std::vector<std::string>> translate(const std::vector<std::string>& lines, const TranslateOptions& search) const;
  void score(const EvaluationSet& set, const std::string& joiner, Evaluation& evaluation) const;
  std::optional<std::vector<std::string>> in_order(const std::optional<std::vector<std::string>>& own, size_t count) const;

  std::shared_ptr<Transformer> model_;
  Vocabularies vocabularies_;
  Options options_;
  std::optional<Scorer> scorer_;
  LossFunction loss_;
  Group& group_;
};

}  // namespace lacuna
