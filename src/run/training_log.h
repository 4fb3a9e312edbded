#pragma once

#include <map>
#include <string>

#include "base/progress_bar.h"
#include "run/validation.h"
#include "train/metrics_log.h"
#include "train/tensorboard.h"
#include "train/trainer.h"

namespace lacuna {

/// How far a run is to go, for the progress bar; 0 = no limit.
struct RunLength {
  int64_t max_steps = 0, max_epochs = 0;
  double batches_per_epoch = 0;
};

/// All that a run says while it trains: lines on stderr and in train.log, records in metrics.jsonl, curves for TensorBoard, and on a
/// terminal a progress bar.
class TrainingLog {
 public:
  /// `state`: where the run stands now; what the files say of later steps is forgotten. `device`: whose memory is told of.
  TrainingLog(const std::string& run, const TrainingState& state, const RunLength& length, at::Device device);

  void progress(const TrainingProgress& progress);
  /// `joiner`: of references in pieces (text/joiner.h).
  void validation(int64_t step, const Evaluation& evaluation, const EvaluationSet& set, int64_t num_samples, const std::string& joiner);
  void attention(int64_t step, const AttentionSummary& summary);
  /// `fingerprint`: of all that decides on the scores, by which a later start knows that they are there.
  void test(int64_t step, const Evaluation& evaluation, const std::string& weights, const std::string& fingerprint);
  /// A moment to draw the progress bar.
  void update(const TrainingState& state);
  void warn(const std::string& text);
  void say(const std::string& text);

 private:
  static void mask_progress(const MaskProgress& masks, std::map<std::string, double>& values);
  void record(const std::string& kind, int64_t step, const std::map<std::string, double>& values, const std::string& set = "",
              const std::map<std::string, std::string>& words = {});
  double share_done(const TrainingState& state) const;

  MetricsLog metrics_;
  TensorBoardWriter tensorboard_;
  RunLength length_;
  ProgressBar bar_;
  at::Device device_;
  TrainingProgress last_;
};

}  // namespace lacuna
