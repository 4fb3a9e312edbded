#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <optional>

#include "attention/attention.h"
#include "attention/calibrated_options.h"
#include "config/options.h"
#include "model/auxiliary_loss.h"
#include "model/linear.h"

namespace lacuna {

/// Sums over the calibrated layers of one mask pass.
struct MaskPass {
  Tensor penalty;  ///< mask_penalty * |1 - m| / sqrt(n), averaged over queries and heads, summed over layers; scalar double, with gradients
  Tensor mean;     ///< the mean of m, averaged and summed alike; without gradients
  int64_t layers = 0;
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
  /// [Tq, H, K]
  Tensor mask_of(const AttentionCall& call, const Tensor& x, const Tensor& mask_keys, const ForwardContext& context);
  /// [Tq, H, K]: 1/n at each of the n keys that a query sees, else 0.
  Tensor even_weights(const AttentionCall& call, const ForwardContext& context) const;
  Tensor perturbed(const Tensor& base, const Tensor& mask, const Tensor& even);
  Tensor combined(const AttentionCall& call, const Tensor& base, const Tensor& mask, const ForwardContext& context);
  /// The share [Tq, H, 1] of the base's weights, in the type of `like`.
  Tensor gate_of(const AttentionCall& call, const Tensor& like, const ForwardContext& context);

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
