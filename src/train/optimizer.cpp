#include "train/optimizer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/profile.h"
#include "train/adam.h"

namespace lacuna {
namespace {

constexpr char kFirstMoment[] = "adam.first_moment.";
constexpr char kSecondMoment[] = "adam.second_moment.";

}  // namespace

Optimizer::Optimizer(FlatParameters parameters, const TrainOptions& options)
    : parameters_(std::move(parameters)),
      options_(options),
      first_moment_(parameters_.new_buffer()),
      second_moment_(parameters_.new_buffer()) {
  if (has_ema()) average_ = parameters_.values().clone();
}

UpdateResult Optimizer::update(double lr, double gradient_scale) {
  const TimedPart timed(ProfilePart::kOptimizer);
  UpdateResult result;
  result.gradient_norm = gradient_scale * std::sqrt(sum_of_squares(parameters_.gradients()));
  result.is_finite = std::isfinite(result.gradient_norm);
  if (!result.is_finite) {
    zero_gradients();
    return result;
  }
  ++num_updates_;
  const double t = static_cast<double>(num_updates_);
  const bool clips = options_.clip_norm > 0 && result.gradient_norm > options_.clip_norm;
  const bool decouples = options_.optimizer == OptimizerType::kAdamW;
  const AdamStep step = {.lr = lr,
                         .gradient_scale = clips ? gradient_scale * options_.clip_norm / result.gradient_norm : gradient_scale,
                         .beta1 = options_.beta1,
                         .beta2 = options_.beta2,
                         .epsilon = options_.epsilon,
                         .bias1 = 1 - std::pow(options_.beta1, t),
                         .bias2 = 1 - std::pow(options_.beta2, t),
                         .l2 = decouples ? 0 : options_.weight_decay,
                         .shrink = decouples ? 1 - lr * options_.weight_decay : 1,
                         .average_rate = std::max(1 - options_.ema_decay, 9 / (t + 9))};
  adam_update({parameters_.values(), parameters_.gradients(), first_moment_, second_moment_, average_}, step);
  parameters_.mark_changed();
  return result;
}

NamedTensors Optimizer::ema_weights() const {
  return has_ema() ? parameters_.views(average_) : NamedTensors();
}

void Optimizer::load_weights(const NamedTensors& weights, const std::string& place) {
  parameters_.load(parameters_.values(), weights, "", place);
}

void Optimizer::load_ema_weights(const NamedTensors& weights, const std::string& place) {
  parameters_.load(average_, weights, "", place);
}

void Optimizer::reset_ema() {
  if (has_ema()) average_.copy_(parameters_.values());
}

void Optimizer::swap_ema() {
  if (!has_ema()) return;
  const Tensor weights = parameters_.values().clone();
  parameters_.values().copy_(average_);
  average_.copy_(weights);
  parameters_.mark_changed();
}

NamedTensors Optimizer::state() const {
  NamedTensors state = parameters_.views(first_moment_, kFirstMoment);
  state.merge(parameters_.views(second_moment_, kSecondMoment));
  return state;
}

void Optimizer::load_state(const NamedTensors& state, int64_t num_updates, const std::string& place) {
  parameters_.load(first_moment_, state, kFirstMoment, place);
  parameters_.load(second_moment_, state, kSecondMoment, place);
  num_updates_ = num_updates;
}

}  // namespace lacuna
