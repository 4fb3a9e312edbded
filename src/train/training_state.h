#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "config/options.h"
#include "data/batch.h"
#include "train/products.h"

namespace lacuna {

/// Returns the name of `metric` among a validation's scores: "bleu", "chrf", "loss" or "ppl".
std::string score_name(ValidMetric metric);
/// Returns true for losses and perplexities.
bool lower_is_better(ValidMetric metric);

/// The history of the validation score that decides: for early stopping and the plateau schedule. A score that is not
/// finite is never better than another, and any finite one is better than it.
struct ScoreHistory {
  double best = 0;
  int64_t best_step = 0;
  int64_t validations = 0;     ///< number of validations so far
  int64_t since_best = 0;      ///< validations without a better score: patience
  int64_t since_decrease = 0;  ///< the same, restarted after each decrease of the learning rate
  int64_t decreases = 0;       ///< decreases of the learning rate (plateau schedule)

  /// Records the score of a validation after `step`.
  void add(double score, int64_t step, const TrainOptions& options);
  bool operator==(const ScoreHistory&) const = default;
};

/// The updates of a LogWindow in which the auxiliary loss was due (model/auxiliary_loss.h).
struct AuxiliaryWindow {
  std::map<std::string, double> values;  ///< AuxiliarySums::values, summed
  int64_t tokens = 0;                    ///< target tokens
  int64_t updates = 0;
  double gradient_norm = 0;  ///< gradient norm of the parameters that it trains, summed over updates

  bool operator==(const AuxiliaryWindow&) const = default;
};

/// Sums over the updates since the last line of the log, stored so that a resumed run writes the same lines.
struct LogWindow {
  double loss = 0;           ///< label-smoothed loss and penalty, nats
  double nll = 0;            ///< unsmoothed loss, nats
  double penalty = 0;        ///< what layers added to the loss
  int64_t correct = 0;       ///< target tokens predicted right
  int64_t tokens = 0;        ///< target tokens
  int64_t updates = 0;       ///< without updates left out
  double gradient_norm = 0;  ///< summed over updates
  AuxiliaryWindow auxiliary;

  bool operator==(const LogWindow&) const = default;
};

/// All that a run needs to resume as if it had never stopped, beside weights and optimizer state (trainer.json).
struct TrainingState {
  int64_t step = 0;                ///< updates so far, including those left out
  int64_t optimizer_updates = 0;   ///< updates so far, without those left out
  int64_t auxiliary_updates = 0;   ///< updates of the parameters that the auxiliary loss trains
  int64_t batches_per_update = 0;  ///< batches whose gradients make an update, on all ranks together; 0 = unknown
  DataPosition position;           ///< position of the next batch
  bool data_is_over = false;       ///< the text, which is read once, has ended
  int64_t tgt_tokens = 0;          ///< target tokens trained on so far
  double hours = 0;                ///< hours of training, over all starts
  int64_t skipped_updates = 0;     ///< updates left out because their gradient was not finite
  int64_t skipped_in_a_row = 0;
  double lr_factor = 1;            ///< of the learning rate: less after training has gone back from where it diverged
  int64_t went_back_from = 0;      ///< the step from which it went back; 0 = it never did
  int64_t last_saved_step = 0;     ///< step of the last scheduled checkpoint
  bool validation_is_due = false;  ///< the validation after `step` was interrupted or failed
  bool save_is_due = false;        ///< the checkpoint of `step` was not written yet
  ScoreHistory scores;
  LogWindow window;
  std::string corpus_fingerprint;
  std::string valid_fingerprint;  ///< fingerprint of the validation set of `scores`; empty = unknown
  Products products;

  std::string to_json() const;
  /// Throws CheckpointError with `place` if the text is not what to_json writes.
  static TrainingState from_json(const std::string& text, const std::string& place);
  bool operator==(const TrainingState&) const = default;
};

}  // namespace lacuna
