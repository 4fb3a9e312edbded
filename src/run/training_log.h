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
  double updates_per_epoch = 0;

  /// Returns the number of updates after which a limit is reached; 0 if there is none.
  int64_t updates() const;
};

/// Speed and loss of the last updates: means in which the weight of an update falls by a twentieth with each that follows.
class RecentUpdates {
 public:
  void add(const UpdateProgress& update);
  double tokens_per_second() const { return seconds_ > 0 ? tokens_ / seconds_ : 0; }
  double loss_per_token() const { return tokens_ > 0 ? loss_ / tokens_ : 0; }

 private:
  double tokens_ = 0, seconds_ = 0, loss_ = 0;
};

/// Reports of a run: lines on stderr and in train.log, records in metrics.jsonl, curves for TensorBoard, a progress bar on a terminal.
class TrainingLog {
 public:
  /// Records of steps after `state`, where the run stands now, are dropped from the files. `device` is the one whose memory is reported.
  /// `shows_ranks` where several ranks serve the run: how long they wait for the slowest of them.
  TrainingLog(const std::string& run, const TrainingState& state, const RunLength& length, at::Device device, bool shows_ranks = false);

  void progress(const TrainingProgress& progress);
  /// Logs a validation with `num_samples` translations beside their references, whose pieces `joiner` joins (text/joiner.h).
  void validation(int64_t step, const Evaluation& evaluation, const EvaluationSet& set, int64_t num_samples, const std::string& joiner);
  void attention(int64_t step, const AttentionSummary& summary);
  /// Logs the scores of a test set. By `fingerprint`, a hash of all that they depend on, a later start knows that they are there.
  void test(int64_t step, const Evaluation& evaluation, const std::string& weights, const std::string& fingerprint);
  /// Draws the progress bar if it is due. To be called after each update.
  void update(const TrainingState& state, const UpdateProgress& update);
  void warn(const std::string& text);
  void say(const std::string& text);
  /// Returns when all records and lines are on the disk.
  void sync() const;

 private:
  void record(const std::string& kind, int64_t step, const std::map<std::string, double>& values, const std::string& set = "",
              const std::map<std::string, std::string>& words = {});

  MetricsLog metrics_;
  TensorBoardWriter tensorboard_;
  RunLength length_;
  ProgressBar bar_;
  at::Device device_;
  bool shows_ranks_;
  RecentUpdates recent_;
};

}  // namespace lacuna
