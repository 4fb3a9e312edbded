#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "attention/attention.h"
#include "attention/calibrated_options.h"
#include "config/options.h"
#include "kernels/calibration.h"
#include "model/auxiliary_loss.h"
#include "model/linear.h"

namespace lacuna {

/// What the calibrated layers of one mask pass leave, [Tq, H] each.
struct MaskPass {
  std::vector<Tensor> penalties;   ///< mask_penalty * |1 - m| / sqrt(n), with gradients
  std::vector<Tensor> mean_masks;  ///< the mean of m, without
};

/// The mask model of one attention layer and what it makes of the layer's weights (README.md). As a module it is called
/// `mask`: parameters query.weight and key.weight [D, D]. They learn in the mask pass alone; in any other the mask is a
/// constant.
class CalibratedAttention : public torch::nn::Module {
 public:
  /// Registers itself as `mask`, and its gate as `gate`, in the attention layer `parent`, whose path is `path`. Null if
  /// `type` is not calibrated.
  static std::shared_ptr<CalibratedAttention> create(torch::nn::Module& parent, std::shared_ptr<const AttentionType> type,
                                                     const ModelOptions& options, const ParameterPath& path);

  CalibratedAttention(std::shared_ptr<const AttentionType> type, const ModelOptions& options, const ParameterPath& path);

  /// The mask model's keys of x (T, D): (T, D).
  Tensor keys(const Tensor& x, const ForwardContext& context);
  /// The context [Tq, H, d] of a call whose q was made of x (Tq, D), with the mask model's keys [Tk, H, d]. Shows a
  /// probe the weights, the base's, the mask and the gate.
  Tensor forward(const AttentionCall& call, const Tensor& x, const Tensor& mask_keys, const ForwardContext& context);

  /// From now on weights are perturbed, and `pass` takes what the masks come to; null = weights are calibrated again.
  void set_pass(MaskPass* pass) { pass_ = pass; }

 private:
  Tensor project(Linear& linear, const Tensor& x, const ForwardContext& context) const;
  /// [Tq, H, K]: the mask is their sigmoid.
  Tensor mask_scores(const AttentionCall& call, const Tensor& x, const Tensor& mask_keys, const ForwardContext& context);
  /// [Tq, H, K]: 1/n at each of the n keys that a query sees, else 0.
  Tensor even_weights(const AttentionCall& call, const ForwardContext& context) const;
  Tensor perturbed(const MaskedWeights& masked, const Tensor& even);
  Tensor combined(const AttentionCall& call, const MaskedWeights& masked, const ForwardContext& context);
  /// [Tq, H]: their sigmoid is the share of the base's weights.
  Tensor gate_scores(const AttentionCall& call, const ForwardContext& context);

  std::shared_ptr<const AttentionType> type_, identity_, softmax_;
  CalibratedOptions options_;
  int64_t num_heads_;
  std::shared_ptr<Linear> query_, key_, gate_;  // gate_: (T, D) queries -> (T, H); null if `combine` needs none
  MaskPass* pass_ = nullptr;
};

/// The training of all mask models of `model`, whose attention is `plan`; null if it has none. The model must outlive
/// it.
std::unique_ptr<AuxiliaryLoss> make_mask_loss(const AttentionPlan& plan, torch::nn::Module& model);

/// True for the parameters of mask models, by their names.
bool is_mask_parameter(const std::string& name);

}  // namespace lacuna
