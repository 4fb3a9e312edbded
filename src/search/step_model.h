#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/decoder_cache.h"
#include "model/logits.h"
#include "model/transformer.h"
#include "text/vocabulary.h"

namespace lacuna {

/// What search knows of a translation model: sentences in, then one token a step.
class StepModel {
 public:
  virtual ~StepModel() = default;
  /// Reads the sources (each ends in eos) and gives a cache with one live hypothesis for each, in order.
  virtual std::unique_ptr<DecoderCache> start(const std::vector<std::vector<TokenId>>& sources) = 0;
  /// What may follow each of the cache's N live hypotheses, after `tokens` [N] (bos at first).
  virtual Logits step(const std::vector<TokenId>& tokens, DecoderCache& cache) = 0;
  /// Size of the target vocabulary.
  virtual int64_t vocab_size() const = 0;
  /// Longest sentence (tokens with eos) that can be read or written; 0 = no limit.
  virtual int64_t max_positions() const = 0;
  /// True if several threads may call it at once, each with a cache of its own.
  virtual bool is_thread_safe() const { return false; }
};

using StepModelPtr = std::shared_ptr<StepModel>;

/// One Transformer.
class TransformerStepModel : public StepModel {
 public:
  explicit TransformerStepModel(std::shared_ptr<Transformer> model) : model_(std::move(model)) {}
  std::unique_ptr<DecoderCache> start(const std::vector<std::vector<TokenId>>& sources) override;
  Logits step(const std::vector<TokenId>& tokens, DecoderCache& cache) override;
  int64_t vocab_size() const override { return model_->sizes().tgt; }
  int64_t max_positions() const override { return model_->max_positions(); }
  /// Not on a GPU, where products may depend on what else is in the batch: threads would share out the sentences differently each time.
  bool is_thread_safe() const override { return model_->device().is_cpu(); }

 private:
  std::shared_ptr<Transformer> model_;
};

}  // namespace lacuna
