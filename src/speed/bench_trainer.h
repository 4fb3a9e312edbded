#pragma once

#include <memory>
#include <vector>

#include "train/trainer.h"

namespace lacuna {

/// A new model with its optimizer, which makes updates as `lacuna train` does on given batches.
class BenchTrainer {
 public:
  BenchTrainer(const Options& options, const VocabularySizes& sizes);
  /// Makes one update on `train.update_freq` batches.
  void update(const std::vector<BatchPtr>& batches);

 private:
  /// A stream of the batches of one update.
  class GivenBatches : public BatchStream {
   public:
    void give(const std::vector<BatchPtr>& batches) {
      batches_ = batches;
      position_.batch = 0;
    }
    BatchPtr next() override { return batches_.at(static_cast<size_t>(position_.batch++)); }
    DataPosition position() const override { return position_; }
    bool at_epoch_end() const override { return false; }
    double seconds_waited() const override { return 0; }

   private:
    std::vector<BatchPtr> batches_;
    DataPosition position_;
  };

  std::shared_ptr<Transformer> model_;
  Optimizer optimizer_;
  GivenBatches batches_;
  Trainer trainer_;
};

/// Counts of some batches; tokens include eos.
struct BatchTokens {
  int64_t sentences = 0, src = 0, tgt = 0;
  void add(const std::vector<BatchPtr>& batches);
  double mean_src_length() const { return static_cast<double>(src) / static_cast<double>(sentences); }
  double mean_tgt_length() const { return static_cast<double>(tgt) / static_cast<double>(sentences); }
};

}  // namespace lacuna
