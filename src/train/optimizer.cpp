#include "train/optimizer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "checkpoint/not_finite.h"
#include "kernels/profile.h"
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

UpdateResult Optimizer::update(double lr, double gradient_scale, bool with_auxiliary, const std::function<bool()>& is_loss_finite) {
  const TimedPart timed(ProfilePart::kOptimizer);
  const auto norm_of = [&](const PlacedGradients& gradients) { return gradient_scale * std::sqrt(sum_of_squares(gradients)); };
  const Group &main = parameters_.groups().front(), &auxiliary = parameters_.groups().back();
  const PlacedGradients gradients = parameters_.gradients(main);
  const PlacedGradients of_auxiliary = with_auxiliary ? parameters_.gradients(auxiliary) : PlacedGradients();
  UpdateResult result = {.gradient_norm = norm_of(gradients), .auxiliary_gradient_norm = norm_of(of_auxiliary)};
  result.is_finite =
      std::isfinite(result.gradient_norm) && std::isfinite(result.auxiliary_gradient_norm) && (!is_loss_finite || is_loss_finite());
  if (!result.is_finite) {
    clear_gradients();
    return result;
  }
  update_group(main, gradients, ++num_updates_, lr, gradient_scale, result.gradient_norm);
  if (with_auxiliary) update_group(auxiliary, of_auxiliary, ++num_auxiliary_updates_, lr, gradient_scale, result.auxiliary_gradient_norm);
  clamp_to_ranges(parameters_.values());
  if (has_ema()) clamp_to_ranges(average_);
  parameters_.mark_changed();
  return result;
}

void Optimizer::clear_gradients() {
  for (const Group& group : parameters_.groups()) parameters_.clear_gradients(group);
}

void Optimizer::update_group(const Group& group, const PlacedGradients& gradients, int64_t number, double lr, double gradient_scale,
                             double norm) {
  const double t = static_cast<double>(number);
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
  adam_update({parameters_.values(), first_moment_, second_moment_, average_}, gradients, step);
  parameters_.clear_gradients(group);
}

void Optimizer::clamp_to_ranges(const Tensor& buffer) const {
  if (ranges_.empty()) return;
  const NamedTensors views = parameters_.views(buffer);
  for (const auto& [name, lowest, highest] : ranges_) views.at(name).clamp_(lowest, highest);
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

std::string Optimizer::not_finite() const {
  const std::pair<const char*, Tensor> buffers[] = {
      {"", parameters_.values()}, {"the moving average of ", average_}, {kFirstMoment, first_moment_}, {kSecondMoment, second_moment_}};
  for (const auto& [prefix, buffer] : buffers)
    if (buffer.defined() && count_not_finite(buffer) > 0) return find_not_finite(parameters_.views(buffer, prefix))->text();
  return "";
}

NamedTensors Optimizer::state() const {
  NamedTensors state = parameters_.views(first_moment_, kFirstMoment);
  state.merge(parameters_.views(second_moment_, kSecondMoment));
  return state;
}

void Optimizer::load_state(const NamedTensors& state, int64_t num_updates, const std::string& place, int64_t num_auxiliary_updates) {
  parameters_.load(first_moment_, state, kFirstMoment, place);
  parameters_.load(second_moment_, state, kSecondMoment, place);
  num_updates_ = num_updates;
  num_auxiliary_updates_ = num_auxiliary_updates;
}

}  // namespace lacuna
