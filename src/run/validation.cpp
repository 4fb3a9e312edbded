#include "run/validation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/interrupt.h"
#include "search/translator.h"
#include "train/transformer_loss.h"

namespace lacuna {
namespace {

constexpr int64_t kTokensLookedAt = 16384;  ///< so many target tokens, or a batch more, tell how a model attends

/// Evaluation mode for as long as it lives.
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
  if (const double loss = evaluation.scores.at("loss"); !std::isfinite(loss))  // search would say it of a checkpoint
    throw MachineError("training has diverged: the loss on " + set.name + " is not finite. " + kWayOutOfDivergence);
  std::optional<std::vector<std::string>> hypotheses = translate(set.src_lines, search);
  if (!hypotheses) return {};
  evaluation.hypotheses = std::move(*hypotheses);
  const ScoreOptions scoring = {.metrics = {"bleu", "chrf"}, .tgt_lang = options_.data.tgt_lang, .joiner = search.joiner};
  const CorpusScores of_lines = score_lines(*scorer_, evaluation.hypotheses, {set.tgt_lines}, scoring);
  for (const auto& [name, score] : of_lines.all()) evaluation.scores[name] = score.score;
  evaluation.signature = of_lines.bleu->signature;
  return evaluation;
}

/// Those of the references under forced decoding.
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
    if (tokens >= kTokensLookedAt) break;
    statistics.begin_batch(batch->src_tokens(), batch->tgt_tokens());
    loss_(*batch, {.probe = &statistics});
    tokens += batch->tgt_tokens();
  }
  return statistics.summary();
}

}  // namespace lacuna
