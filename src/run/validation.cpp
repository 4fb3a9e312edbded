#include "run/validation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "search/translator.h"
#include "text/writing_system.h"
#include "train/trainer.h"

namespace lacuna {
namespace {

constexpr int64_t kProbedTokens = 16384;  ///< target tokens whose attention is summarized, or a batch more

/// Keeps a model in evaluation mode, without gradients, for as long as it lives.
class Evaluating {
 public:
  explicit Evaluating(Transformer& model) : model_(model), was_training_(model.is_training()) { model_.eval(); }
  ~Evaluating() { model_.train(was_training_); }

 private:
  Transformer& model_;
  bool was_training_;
  at::NoGradGuard no_gradients_;
};

}  // namespace

std::vector<EvaluationSet> load_evaluation_sets(const std::vector<CorpusOptions>& corpora, const DataOptions& options,
                                                const TrainingData& data) {
  std::vector<EvaluationSet> sets;
  sets.reserve(corpora.size());
  for (const CorpusOptions& corpus : corpora)
    sets.push_back(load_evaluation_set(corpus, options, data.vocabularies, data.plan.batch_tokens));
  for (const EvaluationSet& set : sets)
    if (const std::string languages = languages_without_spaces(set.tgt_lines); options.tgt_lang.empty() && !languages.empty())
      log_warning(
          "{}: its target side has no spaces between words, and BLEU takes words to end at spaces, as data.tgt_lang is empty: set it to "
          "{}",
          set.name, languages);
  return sets;
}

std::optional<Scorer> find_scorer(const Options& options) {
  const bool validates_translations = !options.data.valid.empty() && options.train.valid_translate;
  if (!validates_translations && options.data.test.empty()) return {};
  Scorer scorer = find_sacrebleu(options.sacrebleu);
  require_tokenizer(scorer, options.data.tgt_lang);
  return scorer;
}

Validator::Validator(std::shared_ptr<Transformer> model, Vocabularies vocabularies, const Options& options, std::optional<Scorer> scorer)
    : model_(std::move(model)),
      vocabularies_(std::move(vocabularies)),
      options_(options),
      scorer_(std::move(scorer)),
      loss_(transformer_loss(model_, options.train, options.device)) {}

std::optional<Evaluation> Validator::evaluate(const EvaluationSet& set, const TranslateOptions& search, bool translates) const {
  const Evaluating mode(*model_);
  std::optional<Scores> scores = forced_scores(set);
  if (!scores) return {};
  Evaluation evaluation{.name = set.name, .scores = std::move(*scores), .hypotheses = {}, .signature = ""};
  if (!translates) return evaluation;
  if (const double loss = evaluation.scores.at("loss"); !std::isfinite(loss))
    throw DivergedError("training has diverged: the loss on " + set.name + " is not finite. " + kWayOutOfDivergence);
  std::optional<std::vector<std::string>> hypotheses = translate(set.src_lines, search);
  if (!hypotheses) return {};
  evaluation.hypotheses = std::move(*hypotheses);
  const ScoreOptions scoring = {.metrics = {"bleu", "chrf"}, .tgt_lang = options_.data.tgt_lang, .joiner = search.joiner};
  const CorpusScores corpus_scores = score_lines(*scorer_, evaluation.hypotheses, {set.tgt_lines}, scoring);
  for (const auto& [name, score] : corpus_scores.all()) evaluation.scores[name] = score.score;
  evaluation.signature = corpus_scores.bleu->signature;
  return evaluation;
}

/// Returns the scores of the references under forced decoding.
std::optional<Scores> Validator::forced_scores(const EvaluationSet& set) const {
  double nll = 0, correct = 0;
  int64_t tokens = 0;
  for (const BatchPtr& batch : set.batches) {
    if (interrupt_signal() != 0) return {};
    const LossSums sums = loss_(*batch, {});
    nll += sums.nll.item<double>();
    correct += sums.correct.item<double>();
    tokens += sums.tokens;
  }
  const auto count = static_cast<double>(std::max<int64_t>(tokens, 1));
  return Scores{{"loss", nll / count}, {"ppl", std::exp(nll / count)}, {"accuracy", correct / count}};
}

std::optional<std::vector<std::string>> Validator::translate(const std::vector<std::string>& lines, const TranslateOptions& search) const {
  TransformerStepModel step_model(model_);
  try {
    return translate_lines(step_model, vocabularies_, lines, search);
  } catch (const Interrupted&) {
    return {};
  }
}

AttentionSummary Validator::attention_summary(const EvaluationSet& set) const {
  const Evaluating mode(*model_);
  AttentionStatistics statistics(std::max(options_.model.encoder_layers, options_.model.decoder_layers));
  int64_t tokens = 0;
  for (const BatchPtr& batch : set.batches) {
    if (tokens >= kProbedTokens) break;
    statistics.begin_batch(batch->src_tokens(), batch->tgt_tokens());
    loss_(*batch, {.probe = &statistics});
    tokens += batch->tgt_tokens();
  }
  return statistics.summary();
}

}  // namespace lacuna
