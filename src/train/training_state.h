#pragma once

#include <cstdint>
#include <string>

#include "config/options.h"
#include "data/batch.h"
#include "train/products.h"

namespace lacuna {

/// The score of `metric` in a validation's scores: "bleu", "chrf", "loss" or "ppl".
std::string score_name(ValidMetric metric);
/// True for losses and perplexities.
bool lower_is_better(ValidMetric metric);

/// The history of the validation score that decides: for early stopping and the plateau schedule. A score that is not finite is never
/// better than another, and any finite one is better than it.
struct ScoreHistory {
  double best = 0;
  int64_t best_step = 0;
  int64_t validations = 0;     ///< so far
  int64_t since_best = 0;      ///< validations without a better score: patience
  int64_t since_decrease = 0;  ///< the same, counted anew after each decrease of the learning rate
  int64_t decreases = 0;       ///< of the learning rate (plateau schedule)

  /// Notes the score of a validation after `step`.
  void add(double score, int64_t step, const TrainOptions& options);
  bool operator==(const ScoreHistory&) const = default;
};

/// The mask passes (attention type calibrated) among the updates of a LogWindow.
struct MaskWindow {
  double objective = 0;  ///< what the mask models minimise, nats a token times tokens
  double loss = 0;       ///< with perturbed weights, label-smoothed, nats
  double mean = 0;       ///< of the mask, times tokens
  int64_t tokens = 0;    ///< target tokens
  int64_t updates = 0;
  double gradient_norm = 0;  ///< sum over updates

  bool operator==(const MaskWindow&) const = default;
};

/// Sums over the updates since the last line of the log. A checkpoint keeps them, so that a resumed run writes the lines it would have
/// written.
struct LogWindow {
  double loss = 0;           ///< label-smoothed, nats, and the penalty
  double nll = 0;            ///< unsmoothed, nats
  double penalty = 0;        ///< what layers added to the loss
  int64_t correct = 0;       ///< target tokens predicted right
  int64_t tokens = 0;        ///< target tokens
  int64_t updates = 0;       ///< those left out do not count
  double gradient_norm = 0;  ///< sum over updates
  MaskWindow masks;

  bool operator==(const LogWindow&) const = default;
};

/// All that a run needs to go on as if it had never stopped, beside weights and optimizer state (trainer.json).
struct TrainingState {
  int64_t step = 0;               ///< updates so far, those left out included
  int64_t optimizer_updates = 0;  ///< without those
  int64_t mask_updates = 0;       ///< of mask models
  DataPosition position;          ///< of the next batch
  int64_t tgt_tokens = 0;         ///< trained on so far
  double hours = 0;               ///< of training, over all starts
  int64_t skipped_updates = 0;    ///< because their gradient was not finite
  int64_t skipped_in_a_row = 0;
  int64_t last_saved_step = 0;     ///< the last scheduled checkpoint
  bool validation_is_due = false;  ///< an interruption or an error came before the end of the validation after `step`
  bool save_is_due = false;        ///< and before its checkpoint
  ScoreHistory scores;
  LogWindow window;
  std::string corpus_fingerprint;
  std::string valid_fingerprint;  ///< of the validation set that `scores` are of; empty where it is not known
  Products products;

  std::string to_json() const;
  /// Throws CheckpointError with `place` if the text is not what to_json writes.
  static TrainingState from_json(const std::string& text, const std::string& place);
  bool operator==(const TrainingState&) const = default;
};

}  // namespace lacuna
