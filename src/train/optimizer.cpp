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

Optimizer::Optimizer(FlatParameters parameters, const TrainOptions& options, std::vector<ParameterRange> ranges)
    : parameters_(std::move(parameters)),
      options_(options),
      ranges_(std::move(ranges)),
      first_moment_(parameters_.new_buffer()),
      second_moment_(parameters_.new_buffer()) {
  if (has_ema()) average_ = parameters_.values().clone();
}

UpdateResult Optimizer::update(double lr, double gradient_scale, bool with_masks) {
  const TimedPart timed(ProfilePart::kOptimizer);
  const Range main = range(0, parameters_.masks_begin(), num_updates_ + 1);
  const Range masks = range(main.end, parameters_.values().numel(), num_mask_updates_ + 1);
  UpdateResult result;
  result.gradient_norm = gradient_scale * std::sqrt(sum_of_squares(main.gradients));
  if (with_masks) result.mask_gradient_norm = gradient_scale * std::sqrt(sum_of_squares(masks.gradients));
  result.is_finite = std::isfinite(result.gradient_norm) && std::isfinite(result.mask_gradient_norm);
  if (!result.is_finite) {
    clear_gradients();
    return result;
  }
  ++num_updates_;
  update_range(main, lr, gradient_scale, result.gradient_norm);
  if (with_masks) {
    ++num_mask_updates_;
    update_range(masks, lr, gradient_scale, result.mask_gradient_norm);
  }
  bring_into_ranges(parameters_.values());
  if (has_ema()) bring_into_ranges(average_);
  parameters_.mark_changed();
  return result;
}

void Optimizer::clear_gradients() {
  parameters_.clear_gradients(0, parameters_.values().numel());
}

void Optimizer::update_range(const Range& range, double lr, double gradient_scale, double norm) {
  const double t = static_cast<double>(range.t);
  const bool clips = options_.clip_norm > 0 && norm > options_.clip_norm;
  const bool decouples = options_.optimizer == OptimizerType::kAdamW;
  const AdamStep step = {.lr = lr,
                         .gradient_scale = clips ? gradient_scale * options_.clip_norm / norm : gradient_scale,
                         .beta1 = options_.beta1,
                         .beta2 = options_.beta2,
                         .epsilon = options_.epsilon,
                         .bias1 = 1 - std::pow(options_.beta1, t),
                         .bias2 = 1 - std::pow(options_.beta2, t),
                         .l2 = decouples ? 0 : options_.weight_decay,
                         .shrink = decouples ? 1 - lr * options_.weight_decay : 1,
                         .average_rate = std::max(1 - options_.ema_decay, 9 / (t + 9))};
  adam_update({parameters_.values(), first_moment_, second_moment_, average_}, range.gradients, step);
  parameters_.clear_gradients(range.begin, range.end);
}

void Optimizer::bring_into_ranges(const Tensor& buffer) const {
  if (ranges_.empty()) return;
  const NamedTensors views = parameters_.views(buffer);
  for (const auto& [name, lowest, highest] : ranges_) views.at(name).clamp_(lowest, highest);
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

void Optimizer::load_state(const NamedTensors& state, int64_t num_updates, const std::string& place, int64_t num_mask_updates) {
  parameters_.load(first_moment_, state, kFirstMoment, place);
  parameters_.load(second_moment_, state, kSecondMoment, place);
  num_updates_ = num_updates;
  num_mask_updates_ = num_mask_updates;
}

}  // namespace lacuna
