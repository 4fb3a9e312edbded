#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "attention/attention.h"
#include "base/forward_context.h"
#include "base/parameter_range.h"
#include "base/ragged.h"
#include "config/options.h"
#include "kernels/packed_product.h"
#include "model/decoder_cache.h"
#include "model/logits.h"

namespace lacuna {

struct VocabularySizes {
  int64_t src = 0, tgt = 0;
  bool shared = false;  ///< one vocabulary: source and target embeddings may be one matrix
};

/// What the mask pass of a batch comes to (attention type calibrated): scalars of double, undefined where there was none.
struct MaskSums {
  Tensor objective;  ///< what the mask models minimise, in nats a token, times the tokens: -min(loss, cap) + penalty; with gradients
  Tensor loss;       ///< label-smoothed cross-entropy with perturbed weights in nats, summed
  Tensor mean;       ///< of the mask
};

/// Sums over the target tokens of a batch, as tensors that are not synchronised until read.
struct LossSums {
  Tensor loss;     ///< label-smoothed cross-entropy in nats, summed, and the penalty; scalar; call backward() on it (divided as wanted)
  Tensor nll;      ///< unsmoothed negative log-likelihood in nats, summed; scalar without gradient
  Tensor correct;  ///< target tokens whose most likely token is right; scalar int64
  int64_t tokens = 0;
  Tensor penalty = {};  ///< what layers add to the loss in training, summed alike; scalar without gradient; undefined = nothing
  MaskSums masks = {};

  bool has_mask_pass() const { return masks.objective.defined(); }
  /// The gradients of all parameters: of `loss`, and those of mask models of their own objective.
  void backward() const;
};

/// Encoder-decoder Transformer (Vaswani et al. 2017, arXiv:1706.03762) on ragged batches, with attention of any type at each layer and
/// site.
///
/// Parameter names (registered modules) are the checkpoint's tensor names: documented in src/model/README.md.
class Transformer : public torch::nn::Module {
 public:
  /// Weights are initialised from `seed` alone. Throws ConfigError for impossible combinations (num_heads not dividing d_model).
  Transformer(const ModelOptions& options, const VocabularySizes& sizes, uint64_t seed);

  /// src [Ts] and tgt [Tt] int64 ids, every sentence ending in eos. The decoder reads bos and tgt without its last token of each sentence.
  /// In training, a model with masks makes the mask pass too, if it is due at this step.
  LossSums loss(const Ragged& src, const Ragged& tgt, double label_smoothing, const ForwardContext& context);

  /// Encoder output [Ts, D].
  Ragged encode(const Ragged& src, const ForwardContext& context);
  /// Decoder output [Tt, D] with teacher forcing on tgt (as in `loss`).
  Ragged decode(const Ragged& memory, const Ragged& tgt, const ForwardContext& context);
  /// log-probability of each token of tgt: [Tt] float. No gradients.
  Tensor token_log_probs(const Ragged& src, const Ragged& tgt, const ForwardContext& context = {});
  /// What decoder output is multiplied with to give logits: [V, D].
  const Tensor& output_weight() const;

  /// Encodes src and gives an empty cache for decoding its B sentences step by step. No gradients; not training.
  std::unique_ptr<DecoderCache> start(const Ragged& src);
  /// One decoding step for the cache's N live hypotheses: tokens [N] are the last token of each (bos at first). Appends their keys and
  /// values to the cache.
  Logits step(const std::vector<int32_t>& tokens, DecoderCache& cache);

  /// The step after which the weights stand: what depends on the step (calibrated attention that is annealed) goes by it outside of
  /// training.
  void set_step(int64_t step);
  /// Of parameters that updates must not lead out of their range.
  std::vector<ParameterRange> parameter_ranges() const;

  /// To be called after weights were written through raw pointers without a pass with gradients since (src/model/README.md).
  void weights_changed();

  /// What passes without gradients (translating, scoring) round weights and activations to in matrix products on the CPU. At first float.
  void set_weight_format(WeightFormat format);
  /// The same for good, for a model that only translates: embeddings too become what kBf16 and kInt8 keep of them, on the CPU. So it is as
  /// if loaded from a checkpoint in that format.
  void round_to(WeightFormat format);

  at::Device device() const;
  const ModelOptions& options() const;
  const VocabularySizes& sizes() const;
  /// Longest sentence (tokens with eos) that can be read or written; 0 = no limit (learned positions have one).
  int64_t max_positions() const;

 private:
  LossSums loss_of(const Ragged& memory, const Ragged& tgt, double label_smoothing, const ForwardContext& context);
  MaskSums mask_pass(const Ragged& memory, const Ragged& tgt, double label_smoothing, ForwardContext context);
  ForwardContext at_step(ForwardContext context) const;

  struct Parts;
  std::shared_ptr<Parts> parts_;
};

}  // namespace lacuna
