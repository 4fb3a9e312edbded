#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/parameter_range.h"
#include "config/options.h"
#include "ranks/group.h"
#include "train/flat_parameters.h"
#include "train/gradient_exchange.h"
#include "train/queued_update.h"
#include "train/shard.h"

namespace lacuna {

/// Result of one update.
struct UpdateResult {
  double gradient_norm = 0;            ///< L2 norm of the main group's gradient before clipping
  double auxiliary_gradient_norm = 0;  ///< L2 norm of the auxiliary group's gradient before clipping
  bool is_finite = true;               ///< false = loss or gradient was infinite or not a number, and the update was left out
};

/// The sums of squares of a rank's chunks of the summed gradient, for each group of parameters, in the order of the buffer.
using GradientSquares = std::array<std::vector<double>, 2>;

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
///
/// Where several ranks train, all have the weights, and each has moments and moving average of the elements that it owns (Shard). Functions
/// marked collective must then be called by all ranks in the same order.
class Optimizer {
 public:
  /// `group` must outlive the optimizer.
  Optimizer(FlatParameters parameters, const TrainOptions& options, const std::vector<ParameterRange>& ranges = {},
            Group& group = no_group());
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Does both halves of an update. Collective.
  UpdateResult update(double lr, double gradient_scale, bool with_auxiliary = false);
  /// Says whether gradients are sent while the last backward pass of an update runs, as they are unless this is called, or after it.
  void set_exchange_overlap(bool overlaps);
  /// Says before a backward pass whether it is this rank's last one of the update: its gradients are then sent while it runs.
  void expect_last_backward(bool is_last);
  /// Returns true if a backward pass has begun to send gradients: what came before it must not be repeated, and is not to be cleared.
  bool has_sent_gradients() const { return exchange_ && exchange_->has_begun(); }
  /// The first half: adds up the accumulated gradients of all ranks, and returns the squares of this rank's elements. Those of the
  /// auxiliary group may be left out where a single rank trains and it is not `with_auxiliary`. Collective.
  GradientSquares sum_gradients(bool with_auxiliary);
  /// The second half: updates the parameters with `gradient_scale` times the summed gradients, unless these or the loss are not finite, and
  /// clears them. Takes the squares of all ranks, in their order. The auxiliary group is updated only `with_auxiliary`. Collective.
  UpdateResult apply(double lr, double gradient_scale, bool with_auxiliary, const std::vector<GradientSquares>& squares,
                     bool is_loss_finite = true);
  /// Undefines the gradients of this rank.
  void clear_gradients();

  /// Returns true if queue() takes the place of sum_gradients() and apply(): one rank trains, on a GPU.
  bool can_queue() const { return is_alone() && has_adam_kernels(parameters_.values()); }
  /// Gives an update to the GPU, as both halves would do it, and does not wait for it. `loss`: the sum of losses, a scalar of double there.
  /// Until the outcome is noted, num_updates() says what was known before.
  QueuedUpdate queue(double lr, double gradient_scale, bool with_auxiliary, const Tensor& loss);
  /// Notes an outcome of queue(), which come in their order.
  UpdateResult note(const UpdateRecord& outcome);

  Group& group() const { return group_; }
  int64_t num_updates() const { return num_updates_; }
  int64_t num_auxiliary_updates() const { return num_auxiliary_updates_; }
  int64_t num_parameters() const { return parameters_.num_parameters(); }
  at::Device device() const { return parameters_.values().device(); }
  bool has_ema() const { return options_.ema_decay > 0; }

  /// The parameters by name: views, not copies.
  NamedTensors weights() const { return parameters_.views(parameters_.values()); }
  /// The moving average of the parameters by name; empty if there is none. With one rank views, with several copies: whole tensors
  /// at rank 0, and nothing elsewhere. Collective.
  NamedTensors ema_weights() const;
  /// Both moments by name, as trainer.safetensors holds them, in the same way as ema_weights(). Collective.
  NamedTensors state() const;

  /// Copies whole tensors, which every rank gives: of average and moments it keeps what it owns. Throws CheckpointError with `place` if
  /// they belong to another model.
  void load_weights(const NamedTensors& weights, const std::string& place) { parameters_.load(parameters_.values(), weights, "", place); }
  void load_ema_weights(const NamedTensors& weights, const std::string& place) { load(average_, weights, "", place); }
  void load_state(const NamedTensors& state, int64_t num_updates, const std::string& place, int64_t num_auxiliary_updates = 0);
  /// Gives all ranks the weights of rank 0. Collective.
  void share_weights();

  /// Restarts the moving average at the present weights.
  void reset_ema();
  /// Swaps the weights with their moving average: called before validation and again after it. The first call is collective.
  void swap_ema();

  /// The accumulated gradients of this rank by name, in the model's order.
  NamedParameters gradients() const { return parameters_.named_gradients(); }
  /// Says on all ranks which tensor of weights, moving average or moments holds values that are not finite; empty if none does. Collective.
  std::string not_finite() const;

 private:
  /// Elements of the values that have a range, and where their average begins.
  struct Bounds {
    Slice slice;
    int64_t own_begin;
    double lowest, highest;
  };

  bool is_alone() const { return group_.is_alone(); }
  Tensor own_of(const Tensor& whole) const;
  std::vector<Bounds> bounds_of(const std::vector<ParameterRange>& ranges) const;
  AdamRule rule_of(double lr, double gradient_scale) const;
  void prepare_queue();
  void finish_update(bool with_auxiliary);
  /// The squares of sum_gradients() where the parts of several ranks lie on GPUs, one for each part. Waits for the GPU, once.
  GradientSquares squares_on_gpu() const;
  double norm_of(size_t parameter_group, const std::vector<GradientSquares>& squares) const;
  void update_group(size_t parameter_group, const AdamStep& step);
  void clamp(const Slice& updated);
  NamedTensors named(const Tensor& own, const std::string& prefix) const;
  void load(const Tensor& own, const NamedTensors& tensors, const std::string& prefix, const std::string& place) const;

  FlatParameters parameters_;
  TrainOptions options_;
  Group& group_;
  std::unique_ptr<Shard> shard_;                ///< null if a single rank trains
  std::unique_ptr<GradientExchange> exchange_;  ///< likewise
  std::vector<Bounds> bounds_;
  Tensor first_moment_, second_moment_, average_;  ///< of the elements that this rank owns; average_ undefined without moving average
  Tensor kept_weights_;                            ///< with several ranks: while the weights are swapped with their average
  std::array<PlacedGradients, 2> gradients_;       ///< with a single rank: of each group, between the halves of an update
  int64_t num_updates_ = 0, num_auxiliary_updates_ = 0;
  Tensor record_, decisions_;  ///< of queued updates, on the GPU: an UpdateRecord and two UpdateDecisions
};

}  // namespace lacuna
