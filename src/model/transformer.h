#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attention/attention.h"
#include "attention/forward_context.h"
#include "base/parameter_range.h"
#include "base/ragged.h"
#include "config/options.h"
#include "kernels/packed_product.h"
#include "model/auxiliary_loss.h"
#include "model/decoder_cache.h"
#include "model/logits.h"

namespace lacuna {

struct VocabularySizes {
  int64_t src = 0, tgt = 0;
  bool shared = false;  ///< one vocabulary: source and target embeddings may be one matrix
};

/// The length of sentences that need the most memory for each token in training, beside the longest ones: attention keeps
/// all weights of sentences up to here for the backward pass.
inline constexpr int64_t kLongestWithKeptWeights = kKeptKeys;

/// Links between the tokens of a batch, and the head of cross attention that they guide (attention/alignment_guide.h).
struct GuidingLinks {
  AlignmentSource guided = {};
  double weight = 0;                                        ///< of the alignment loss
  std::span<const std::pair<int32_t, int32_t>> links = {};  ///< rows of src and of tgt
};

/// Sums over the target tokens of a batch, as tensors that are not synchronized until read.
struct LossSums {
  Tensor loss;     ///< label-smoothed cross-entropy in nats, summed, and the penalty; scalar; call backward() on it (divided as wanted)
  Tensor nll;      ///< unsmoothed negative log-likelihood in nats, summed; scalar without gradient
  Tensor correct;  ///< target tokens whose most likely token is right; scalar int64
  int64_t tokens = 0;
  Tensor penalty =
      {};  ///< what layers and links add to the loss in training, summed in the same way; scalar without gradient; undefined = nothing
  AuxiliarySums auxiliary = {};  ///< of the second objective, if the model has one and it was due

  bool has_auxiliary() const { return auxiliary.objective.defined(); }
  /// Computes the gradients of all parameters: of `loss`, and of the auxiliary objective for those that it trains.
  void backward() const;
};

/// Encoder-decoder Transformer (Vaswani et al. 2017, arXiv:1706.03762) on ragged batches, with attention of any type at
/// each layer and site.
///
/// Parameter names (registered modules) are the checkpoint's tensor names: documented in src/model/README.md.
class Transformer : public torch::nn::Module {
 public:
  /// Weights are initialized from `seed` alone. Throws ConfigError for impossible combinations (num_heads not dividing
  /// d_model).
  Transformer(const ModelOptions& options, const VocabularySizes& sizes, uint64_t seed);

  /// src [Ts] and tgt [Tt] int64 ids, every sentence ending in eos. The decoder reads bos and tgt without its last
  /// token of each sentence. In training the auxiliary loss is computed too, if it is due at this step.
  /// `links` add their alignment loss, in training.
  LossSums loss(const Ragged& src, const Ragged& tgt, double label_smoothing, const ForwardContext& context,
                const GuidingLinks& links = {});

  /// Has the upload bring what a GPU reads of the borders of a batch's sentences, for a loss that this thread computes once it is sent.
  /// Without it, layers send that themselves.
  void prepare(const RaggedShapePtr& src, const RaggedShapePtr& tgt, const ForwardContext& context, Upload& upload) const;

  /// Returns the encoder's output [Ts, D].
  Ragged encode(const Ragged& src, const ForwardContext& context);
  /// Returns the decoder's output [Tt, D] with teacher forcing on tgt (as in `loss`).
  Ragged decode(const Ragged& memory, const Ragged& tgt, const ForwardContext& context);
  /// Returns the log-probability of each token of tgt: [Tt] float. No gradients.
  Tensor token_log_probs(const Ragged& src, const Ragged& tgt, const ForwardContext& context = {});
  /// Returns the weight [V, D] of the output projection, and its bias [V]; the bias is undefined if the model has none.
  const Tensor& output_weight() const;
  const Tensor& output_bias() const;

  /// Encodes src and returns an empty cache for decoding its B sentences step by step. No gradients, no dropout.
  std::unique_ptr<DecoderCache> start(const Ragged& src);
  /// Takes one decoding step for the cache's N live hypotheses: tokens [N] are the last token of each (bos at first).
  /// Appends their keys and values to the cache.
  Logits step(const std::vector<int32_t>& tokens, DecoderCache& cache);

  /// Sets the update that the weights come from. Outside of training, it decides what depends on the step (the share of
  /// weights that are annealed).
  void set_step(int64_t step);
  /// The second objective; null if the model has none.
  const AuxiliaryLoss* auxiliary_loss() const;
  /// Returns the ranges that updates must keep some parameters in.
  std::vector<ParameterRange> parameter_ranges() const;

  /// Drops packed copies of weights. Call it after weights were written through raw pointers, unless a pass with
  /// gradients follows (src/model/README.md).
  void weights_changed();

  /// Sets what passes without gradients (translating, scoring) round weights and activations to in matrix products on
  /// the CPU: fp32, bf16 or int8. The default is fp32. Weights stay as they are; a product packs a rounded copy of its
  /// weight the first time (PackedCache, PackedWeight).
  void set_precision(Precision precision);
  /// Does what set_precision does, and rounds the embeddings themselves on the CPU, for a model that only translates:
  /// it is then as if loaded from a checkpoint that was quantized to this precision. Embeddings stay tensors of float.
  void round_to(Precision precision);
  /// Does that for one parameter, by its name, of a model that only translates: the weight of a linear layer is packed at once, and then
  /// goes, so that it is not twice in memory.
  void keep_rounded(const std::string& parameter, Precision precision);

  at::Device device() const;
  const ModelOptions& options() const;
  const VocabularySizes& sizes() const;
  /// Returns the length of the longest sentence (tokens with eos) that can be read or written; 0 = no limit (learned
  /// positions have one).
  int64_t max_positions() const;

 private:
  LossSums loss_of(const Ragged& memory, const Ragged& tgt, double label_smoothing, const ForwardContext& context);
  ForwardContext at_step(ForwardContext context) const;

  struct Parts;
  std::shared_ptr<Parts> parts_;
};

}  // namespace lacuna
