#include "train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace lacuna {

LearningRate::LearningRate(const TrainOptions& options, int64_t d_model)
    : options_(options), model_scale_(1 / std::sqrt(static_cast<double>(d_model))), last_step_(options.schedule_end()) {}

double LearningRate::at(int64_t step, int64_t decreases) const {
  const int64_t warmup = options_.warmup_steps;
  if (step >= warmup) return std::max(after_warmup(step, decreases), options_.min_lr);
  return after_warmup(warmup, decreases) * static_cast<double>(step) / static_cast<double>(warmup);
}

double LearningRate::after_warmup(int64_t step, int64_t decreases) const {
  const double t = static_cast<double>(std::max<int64_t>(step, 1));
  const double w = static_cast<double>(std::max<int64_t>(options_.warmup_steps, 1));
  const double lr = options_.lr, range = options_.lr - options_.min_lr;
  const double x =
      std::min(1.0, static_cast<double>(step - options_.warmup_steps) / static_cast<double>(last_step_ - options_.warmup_steps));
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
