#include "run/starting_point.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "checkpoint/run_folder.h"
#include "data/batch_maker.h"
#include "run/remarks.h"
#include "train/learning_rate.h"

namespace lacuna {
namespace {

void require_same_pieces(const Vocabulary& ours, const Vocabulary& theirs, const std::string& side, const std::string& place) {
  if (!vocabulary_difference(ours, theirs, side).empty())
    throw DataError("the " + side + " vocabulary of " + place +
                    ", from which training would go on, is not that of this configuration. Use its vocabulary (name none in `data`, or the "
                    "same file)");
}

}  // namespace

std::optional<ResumePoint> find_starting_point(const Options& options, bool starts_anew, const Rules& rules) {
  std::optional<ResumePoint> point;
  if (!starts_anew) point = find_resume_point(options.run);
  if (point || options.train.init_from.empty()) return point;
  point = read_while_replaced(options.train.init_from, [&] { return initial_point(options.train); });
  fit_to_batches(*point, options);
  if (const auto end = end_of(point->state, point->state.hours, options.train))
    throw ConfigError(rules.place({"train.init_from"}) + "train.init_from: " + point->path +
                      " stands where training ends: " + end_text(*end, point->state, options.train) +
                      ". Set train.reset: [optimizer, lr, data, best] to start anew with its weights, or let training end later");
  return point;
}

std::optional<Vocabularies> kept_vocabularies(const std::optional<ResumePoint>& point, const DataOptions& data, const Rules& rules) {
  if (!point || !data.trains_vocabularies() || !point->checkpoint.vocabularies.src->is_sentencepiece()) return {};
  const DataOptions& theirs = point->options.data;
  for (const std::string& symbol : data.spm_symbols)
    for (const VocabularyPtr& vocabulary : {point->checkpoint.vocabularies.src, point->checkpoint.vocabularies.tgt})
      rules.require(vocabulary->id_of(symbol) != kUnk, {"data.spm_symbols"},
                    "data.spm_symbols holds \"" + symbol + "\", which the vocabulary of " + point->path +
                        " has not; remove it, or train a model with it from the start");
  if (theirs.vocab_size != data.vocab_size || theirs.spm_byte_fallback != data.spm_byte_fallback ||
      theirs.shared_vocab != data.shared_vocab || theirs.spm_type != data.spm_type)
    log_info(
        "{} brings its own vocabulary, of {} source and {} target pieces: data.vocab_size, shared_vocab, spm_type and spm_byte_fallback "
        "are those of one that is trained",
        point->path, point->checkpoint.vocabularies.src->size(), point->checkpoint.vocabularies.tgt->size());
  return point->checkpoint.vocabularies;
}

TrainingState start_from(ResumePoint& point, const TrainingData& data, Transformer& model, const std::vector<std::string>& reset) {
  require_same_pieces(*data.vocabularies.src, *point.checkpoint.vocabularies.src, "source", point.path);
  require_same_pieces(*data.vocabularies.tgt, *point.checkpoint.vocabularies.tgt, "target", point.path);
  fit_to_attention(point, model, reset);
  load_weights(model, point.checkpoint.weights, point.path);  // for its words, where they do not fit
  if (const std::string note = note_of_other_model(point, model.options()); !note.empty()) log_warning("train.init_from: {}", note);
  TrainingState state = point.state;
  if (data.plan.stream && !data.plan.stream->skips_consumed()) state.data_is_over = false;  // more of it may come
  fit_to_corpus(state, data.fingerprint, reset, point.path);
  return state;
}

void choose_schedule(Options& options, const TrainingData& data, int64_t batches_per_update, const std::optional<ResumePoint>& point) {
  TrainOptions& train = options.train;
  const bool keeps_rate = point && std::ranges::find(train.reset, "lr") == train.reset.end();
  if (!train.warmup_steps.value && keeps_rate) train.warmup_steps = point->options.train.warmup_steps;
  if (!train.warmup_steps.value) train.warmup_steps = fitting_warmup(train, updates_per_epoch(batches_per_update, data));
  if (train.patience.value) return;
  constexpr int64_t kPatience = 10;
  const bool has_end = train.max_steps > 0 || train.max_epochs > 0 || train.max_hours > 0 || data.plan.stream;
  train.patience = has_end || options.data.valid.empty() ? 0 : kPatience;
}

double updates_per_epoch(int64_t batches_per_update, const TrainingData& data) {
  return batches_of_epoch(data.plan) / static_cast<double>(batches_per_update);
}

}  // namespace lacuna
