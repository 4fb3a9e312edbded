#include "train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace lacuna {

int64_t fitting_warmup(const TrainOptions& options, double updates_per_epoch) {
  constexpr double kUsual = 4000, kMostEpochs = 10, kMostOfRun = 0.1;
  double updates = kUsual;
  const auto limit = [&](double share, double end) {
    if (end > 0) updates = std::min(updates, share * end);
  };
  limit(kMostEpochs, updates_per_epoch);
  limit(kMostOfRun, static_cast<double>(options.max_steps));
  limit(kMostOfRun, static_cast<double>(options.schedule_end()));
  limit(kMostOfRun, static_cast<double>(options.max_epochs) * updates_per_epoch);
  return std::max<int64_t>(1, std::llround(updates));
}

LearningRate::LearningRate(const TrainOptions& options, int64_t d_model)
    : options_(options),
      model_scale_(1 / std::sqrt(static_cast<double>(d_model))),
      warmup_(options.warmup_steps.value_or(fitting_warmup(options, 0))),
      last_step_(options.schedule_end()) {}

double LearningRate::at(int64_t step, int64_t decreases) const {
  if (step >= warmup_) return std::max(after_warmup(step, decreases), options_.min_lr);
  return after_warmup(warmup_, decreases) * static_cast<double>(step) / static_cast<double>(warmup_);
}

double LearningRate::after_warmup(int64_t step, int64_t decreases) const {
  const double t = static_cast<double>(std::max<int64_t>(step, 1));
  const double w = static_cast<double>(std::max<int64_t>(warmup_, 1));
  const double lr = options_.lr, range = options_.lr - options_.min_lr;
  const double x = std::min(1.0, static_cast<double>(step - warmup_) / static_cast<double>(last_step_ - warmup_));
  switch (options_.schedule) {
    case Schedule::kInverseSqrt:
      return lr * std::sqrt(w / t);
    case Schedule::kNoam:
      return lr * model_scale_ / std::sqrt(t);
    case Schedule::kLinear:
      return options_.min_lr + range * (1 - x);
    case Schedule::kCosine:
      return options_.min_lr + range * (1 + std::cos(std::numbers::pi * x)) / 2;
    case Schedule::kPlateau:
      return lr * std::pow(options_.plateau_factor, static_cast<double>(decreases));
    case Schedule::kConstant:
      return lr;
  }
  throw ConfigError("train.schedule is unknown");
}

}  // namespace lacuna
