#include "run/validation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "ranks/stage.h"
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

std::string bytes_of(double number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

/// Returns the number at a place among those that bytes_of() gave.
double number_of(const std::string& bytes, size_t place = 0) {
  double number = 0;
  if (bytes.size() < (place + 1) * sizeof number) throw std::logic_error("a rank has sent too few numbers");
  std::memcpy(&number, bytes.data() + place * sizeof number, sizeof number);
  return number;
}

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

Validator::Validator(std::shared_ptr<Transformer> model, Vocabularies vocabularies, const Options& options, std::optional<Scorer> scorer,
                     Group& group)
    : model_(std::move(model)),
      vocabularies_(std::move(vocabularies)),
      options_(options),
      scorer_(std::move(scorer)),
      loss_(transformer_loss(model_, options.train, options.device)),
      group_(group) {}

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
  score(set, search.joiner, evaluation);
  return evaluation;
}

/// Adds the scores of sacreBLEU, which rank 0 calls.
void Validator::score(const EvaluationSet& set, const std::string& joiner, Evaluation& evaluation) const {
  const std::string bytes = from_first(group_, [&] {
    const ScoreOptions scoring = {.metrics = {"bleu", "chrf"}, .tgt_lang = options_.data.tgt_lang, .joiner = joiner};
    const CorpusScores scores = score_lines(*scorer_, evaluation.hypotheses, {set.tgt_lines}, scoring);
    std::vector<std::string> found = {scores.bleu->signature};
    for (const auto& [name, score] : scores.all()) found.insert(found.end(), {name, bytes_of(score.score)});
    return packed(found);
  });
  const std::vector<std::string> found = unpacked(bytes);
  evaluation.signature = found.at(0);
  for (size_t i = 1; i < found.size(); i += 2) evaluation.scores[found[i]] = number_of(found[i + 1]);
}

/// Returns what all ranks have found, each for its part of `count` items, in the order of the items; nothing if one was interrupted. The
/// first rank alone has what they are.
std::optional<std::vector<std::string>> Validator::in_order(const std::optional<std::vector<std::string>>& own, size_t count) const {
  if (group_.is_alone()) return own;
  const std::vector<std::string> interrupted = group_.gather_to_all(own ? "" : "interrupted");
  if (!std::ranges::all_of(interrupted, &std::string::empty)) return {};
  std::vector<std::vector<std::string>> parts;
  for (const std::string& part : group_.gather(packed(*own))) parts.push_back(unpacked(part));
  std::vector<std::string> items;
  for (size_t i = 0; i < count && !parts.empty(); ++i) items.push_back(parts[i % parts.size()].at(i / parts.size()));
  return items;
}

/// Returns the scores of the references under forced decoding.
std::optional<Scores> Validator::forced_scores(const EvaluationSet& set) const {
  const auto rank = static_cast<size_t>(group_.rank()), ranks = static_cast<size_t>(group_.size());
  std::optional<std::vector<std::string>> own = on_all_ranks(group_, [&] {
    std::optional<std::vector<std::string>> sums(std::in_place);
    for (size_t i = rank; i < set.batches.size() && sums; i += ranks) {
      if (interrupt_signal() != 0) {
        sums.reset();
        break;
      }
      const LossSums loss = loss_(*set.batches[i], {});
      sums->push_back(bytes_of(loss.nll.item<double>()) + bytes_of(loss.correct.item<double>()) +
                      bytes_of(static_cast<double>(loss.tokens)));
    }
    return sums;
  });
  const std::optional<std::vector<std::string>> all = in_order(own, set.batches.size());
  if (!all) return {};
  double nll = 0, correct = 0, tokens = 0;
  for (const std::string& sums : *all) {
    nll += number_of(sums, 0);
    correct += number_of(sums, 1);
    tokens += number_of(sums, 2);
  }
  const std::string shared = group_.broadcast(bytes_of(nll) + bytes_of(correct) + bytes_of(std::max(tokens, 1.0)));
  const double count = number_of(shared, 2), loss = number_of(shared, 0) / count;
  return Scores{{"loss", loss}, {"ppl", std::exp(loss)}, {"accuracy", number_of(shared, 1) / count}};
}

/// Returns the translations, at rank 0 of all lines, elsewhere of none; nothing if one rank was interrupted.
std::optional<std::vector<std::string>> Validator::translate(const std::vector<std::string>& lines, const TranslateOptions& search) const {
  const auto rank = static_cast<size_t>(group_.rank()), ranks = static_cast<size_t>(group_.size());
  std::vector<TranslationInput> own;
  for (size_t i = rank; i < lines.size(); i += ranks) own.push_back({.text = lines[i], .prefix = "", .id = static_cast<int64_t>(i)});
  return in_order(on_all_ranks(group_,
                               [&]() -> std::optional<std::vector<std::string>> {
                                 TransformerStepModel step_model(model_);
                                 try {
                                   return translate_lines(step_model, vocabularies_, own, search);
                                 } catch (const Interrupted&) {
                                   return {};
                                 }
                               }),
                  lines.size());
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
