#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ragged.h"
#include "model/decoder_cache.h"
#include "model/logits.h"
#include "model/transformer.h"
#include "text/vocabulary.h"

namespace lacuna {

/// The interface of a translation model for search: reads sentences, then predicts one token per step.
class StepModel {
 public:
  virtual ~StepModel() = default;
  /// Encodes the sources (each ends in eos) and returns a cache with one live hypothesis for each, in order.
  virtual std::unique_ptr<DecoderCache> start(const std::vector<std::vector<TokenId>>& sources) = 0;
  /// Appends `tokens` [N] (bos at first) to the cache's N live hypotheses; returns the logits of the next tokens.
  virtual Logits step(const std::vector<TokenId>& tokens, DecoderCache& cache) = 0;
  /// Returns the size of the target vocabulary.
  virtual int64_t vocab_size() const = 0;
  /// Returns the longest sentence, in tokens with eos, that can be read or written; 0 = no limit.
  virtual int64_t max_positions() const = 0;
  /// Returns true if several threads may call the model at once, each with its own cache.
  virtual bool is_thread_safe() const { return false; }
};

using StepModelPtr = std::shared_ptr<StepModel>;

/// A single Transformer as a StepModel.
class TransformerStepModel : public StepModel {
 public:
  explicit TransformerStepModel(std::shared_ptr<Transformer> model) : model_(std::move(model)) {}
  std::unique_ptr<DecoderCache> start(const std::vector<std::vector<TokenId>>& sources) override {
    return model_->start(ragged_of(sources, model_->device()));
  }
  Logits step(const std::vector<TokenId>& tokens, DecoderCache& cache) override { return model_->step(tokens, cache); }
  int64_t vocab_size() const override { return model_->sizes().tgt; }
  int64_t max_positions() const override { return model_->max_positions(); }
  /// False on a GPU, where products may depend on the rest of the batch: threads would divide the sentences differently
  /// in each run.
  bool is_thread_safe() const override { return model_->device().is_cpu(); }

 private:
  std::shared_ptr<Transformer> model_;
};

}  // namespace lacuna
