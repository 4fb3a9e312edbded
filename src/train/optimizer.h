#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/parameter_range.h"
#include "config/options.h"
#include "train/flat_parameters.h"

namespace lacuna {

/// Result of one update.
struct UpdateResult {
  double gradient_norm = 0;            ///< L2 norm of the main group's gradient before clipping
  double auxiliary_gradient_norm = 0;  ///< L2 norm of the auxiliary group's gradient before clipping
  bool is_finite = true;               ///< false = loss or gradient was infinite or not a number, and the update was left out
};

/// Adam (Kingma & Ba 2015, arXiv:1412.6980) or AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101) over all parameters,
/// with clipping by the global norm and a moving average of the weights. With g the gradient, t the update's number:
///   m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g²
///   w = w - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
/// adam adds weight_decay * w to g; adamw multiplies w by 1 - lr * weight_decay instead. The moving average follows w
/// with the rate max(1 - ema_decay, 9 / (t + 9)), so that it soon forgets the first updates.
///
/// The first group, the main one, is updated each time; the second, if any, when its auxiliary loss
/// (model/auxiliary_loss.h) was due, with a norm, clipping and t of its own. Then parameters with a range, and their
/// averages, are clamped to it. Deterministic: the order of sums does not depend on the number of threads.
class Optimizer {
 public:
  Optimizer(FlatParameters parameters, const TrainOptions& options, std::vector<ParameterRange> ranges = {});

  /// Updates the parameters with `gradient_scale` times the accumulated gradients, and clears these. The auxiliary
  /// group is updated only `with_auxiliary`.
  /// `is_loss_finite`, if given, is asked once the gradients are known to be finite.
  UpdateResult update(double lr, double gradient_scale, bool with_auxiliary = false, const std::function<bool()>& is_loss_finite = {});
  void clear_gradients();

  int64_t num_updates() const { return num_updates_; }
  int64_t num_auxiliary_updates() const { return num_auxiliary_updates_; }
  int64_t num_parameters() const { return parameters_.num_parameters(); }
  at::Device device() const { return parameters_.values().device(); }

  /// The parameters by name, and their moving average (empty if there is none): views, not copies.
  NamedTensors weights() const { return parameters_.views(parameters_.values()); }
  NamedTensors ema_weights() const { return has_ema() ? parameters_.views(average_) : NamedTensors(); }
  bool has_ema() const { return options_.ema_decay > 0; }
  void load_weights(const NamedTensors& weights, const std::string& place) { parameters_.load(parameters_.values(), weights, "", place); }
  void load_ema_weights(const NamedTensors& weights, const std::string& place) { parameters_.load(average_, weights, "", place); }
  /// Restarts the moving average at the present weights.
  void reset_ema();
  /// Swaps the weights with their moving average: called before validation and again after it.
  void swap_ema();

  /// The accumulated gradients by name, in the model's order.
  NamedParameters gradients() const { return parameters_.named_gradients(); }
  /// Says which tensor of weights, moving average or moments holds values that are not finite; empty if none does.
  std::string not_finite() const;

  /// Both moments by name, as trainer.safetensors holds them: views, not copies.
  NamedTensors state() const;
  /// Copies both moments and numbers of updates. Throws CheckpointError with `place` if they belong to another model.
  void load_state(const NamedTensors& state, int64_t num_updates, const std::string& place, int64_t num_auxiliary_updates = 0);

 private:
  using Group = FlatParameters::Range;
  /// Update number `number` of a group, whose scaled gradient has the norm `norm`.
  void update_group(const Group& group, const PlacedGradients& gradients, int64_t number, double lr, double gradient_scale, double norm);
  void clamp_to_ranges(const Tensor& buffer) const;

  FlatParameters parameters_;
  TrainOptions options_;
  std::vector<ParameterRange> ranges_;
  Tensor first_moment_, second_moment_, average_;  // each like parameters_.values(); average_ undefined without moving average
  int64_t num_updates_ = 0, num_auxiliary_updates_ = 0;
};

}  // namespace lacuna
