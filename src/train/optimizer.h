#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/parameter_range.h"
#include "config/options.h"
#include "train/flat_parameters.h"

namespace lacuna {

/// What one update did.
struct UpdateResult {
  double gradient_norm = 0;       ///< L2 norm of the gradient before clipping
  double mask_gradient_norm = 0;  ///< likewise of the mask models'
  bool is_finite = true;          ///< false: a gradient held infinities or not-a-numbers, and the update was left out
};

/// Adam (Kingma & Ba 2015, arXiv:1412.6980) or AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101) over all parameters at once, with
/// clipping by the global norm and an exponential moving average of the weights.
///
/// With g the gradient, t the update's number:
///   m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g²
///   w = w - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
/// adam adds weight_decay * w to g; adamw multiplies w by 1 - lr * weight_decay instead.
///
/// The moving average follows w with the rate max(1 - ema_decay, 9 / (t + 9)): the first updates, far from where training ends, are soon
/// forgotten.
///
/// Mask models (attention type calibrated) are updated where there was a mask pass only, with a norm, clipping and t of their own.
/// After each update, parameters of a range, and their moving averages, are brought back into it.
///
/// Deterministic: sums are taken in a fixed order whatever the number of threads.
class Optimizer {
 public:
  Optimizer(FlatParameters parameters, const TrainOptions& options, std::vector<ParameterRange> ranges = {});

  /// One update with `gradient_scale` times the accumulated gradients, which are gone afterwards. `with_masks`: of the mask models too.
  UpdateResult update(double lr, double gradient_scale, bool with_masks = false);
  void clear_gradients();

  int64_t num_updates() const { return num_updates_; }
  int64_t num_mask_updates() const { return num_mask_updates_; }
  int64_t num_parameters() const { return parameters_.num_parameters(); }
  at::Device device() const { return parameters_.values().device(); }

  /// The parameters, and their moving average (empty if there is none), by name: views, not copies.
  NamedTensors weights() const { return parameters_.views(parameters_.values()); }
  NamedTensors ema_weights() const;
  bool has_ema() const { return options_.ema_decay > 0; }
  void load_weights(const NamedTensors& weights, const std::string& place);
  void load_ema_weights(const NamedTensors& weights, const std::string& place);
  /// Restarts the moving average at the present weights.
  void reset_ema();
  /// Exchanges the weights with their moving average: called before validation and again after it.
  void swap_ema();

  /// Both moments by name. Throws CheckpointError with `place` if they belong to another model.
  NamedTensors state() const;
  void load_state(const NamedTensors& state, int64_t num_updates, const std::string& place, int64_t num_mask_updates = 0);

 private:
  /// Parameters begin to end of the buffers, updated together: the t-th update.
  struct Range {
    int64_t begin, end, t;
    PlacedGradients gradients;
  };
  Range range(int64_t begin, int64_t end, int64_t t) const { return {begin, end, t, parameters_.gradients(begin, end)}; }
  void update_range(const Range& range, double lr, double gradient_scale, double norm);
  void bring_into_ranges(const Tensor& buffer) const;

  FlatParameters parameters_;
  TrainOptions options_;
  std::vector<ParameterRange> ranges_;
  Tensor first_moment_, second_moment_, average_;  // each like parameters_.values(); average_ undefined without moving average
  int64_t num_updates_ = 0, num_mask_updates_ = 0;
};

}  // namespace lacuna
