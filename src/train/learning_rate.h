#pragma once

#include <cstdint>

#include "config/options.h"

namespace lacuna {

/// The warm-up that `train.warmup_steps: auto` stands for: 4000 updates, but at most 10 epochs and a tenth of the run, as far as its length
/// is known. `updates_per_epoch` is 0 where it is unknown.
int64_t fitting_warmup(const TrainOptions& options, double updates_per_epoch);

/// The learning rate of each update, by `train.schedule`. With t the update's number (1, 2, ...), w = warmup_steps, T =
/// decay_steps (or max_steps), and D = d_model, for t >= w:
///
///   inverse_sqrt  lr * sqrt(w / t), w at least 1              Vaswani et al. 2017 up to the factor (fairseq, Marian)
///   noam          lr * D^-0.5 * t^-0.5                        Vaswani et al. 2017, arXiv:1706.03762, equation 3; lr is a factor
///   linear        from lr at w down to min_lr at T, straight
///   cosine        min_lr + (lr - min_lr) * (1 + cos(pi * x)) / 2, x from 0 at w to 1 at T      Loshchilov & Hutter 2017
///   plateau       lr * plateau_factor^n, n the number of decreases so far
///   constant      lr
///
/// and for t < w the value at w times t / w: the warm-up is linear from 0. After it, no rate is below min_lr.
class LearningRate {
 public:
  /// REQUIRES: validated options (config/load.h): a schedule that needs an end has one, later than the warm-up. An `auto` warm-up is
  /// fitting_warmup(options, 0).
  LearningRate(const TrainOptions& options, int64_t d_model);

  /// Returns the rate of update `step` (1, 2, ...). `decreases` is how often the plateau schedule has lowered it.
  double at(int64_t step, int64_t decreases = 0) const;

 private:
  double after_warmup(int64_t step, int64_t decreases) const;

  TrainOptions options_;
  double model_scale_;
  int64_t warmup_, last_step_;
};

}  // namespace lacuna
