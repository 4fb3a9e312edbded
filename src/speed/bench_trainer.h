#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "data/training_data.h"
#include "train/trainer.h"

namespace lacuna {

/// A new model with its optimizer, which makes updates as `lacuna train` does on given batches.
class BenchTrainer {
 public:
  /// `group` must live as long.
  BenchTrainer(const Options& options, const VocabularySizes& sizes, Group& group = no_group());
  /// Makes one update on `train.update_freq` batches of each rank, these here. Collective.
  void update(const std::vector<BatchPtr>& batches);
  int64_t num_parameters() const { return optimizer_.num_parameters(); }
  /// Says whether ranks exchange gradients during the backward pass, or after it.
  void set_exchange_overlap(bool overlaps) { optimizer_.set_exchange_overlap(overlaps); }

 private:
  /// A stream of the batches of one update: those of other ranks are null.
  class GivenBatches : public BatchStream {
   public:
    void give(const std::vector<BatchPtr>& batches, const Group& group) {
      const auto rank = static_cast<size_t>(group.rank()), size = static_cast<size_t>(group.size());
      batches_.assign(batches.size() * size, nullptr);
      for (size_t i = 0; i < batches.size(); ++i) batches_[i * size + rank] = batches[i];
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

/// Training data, the batches of one update at a time.
class BenchBatches {
 public:
  /// Opens the corpora; vocabulary and token cache are in `folder`.
  BenchBatches(const Options& options, const std::string& folder);

  /// Returns `train.update_freq` batches.
  std::vector<BatchPtr> next();
  double seconds_waited() const { return stream_->seconds_waited(); }
  VocabularySizes sizes() const { return sizes_of(data_.vocabularies); }

 private:
  TrainingData data_;
  int64_t per_update_;
  std::unique_ptr<BatchStream> stream_;
};

/// Returns the settings that every report names: precision, device, threads.
nlohmann::ordered_json setting_of(const Options& options);

/// Counts of some batches; tokens include eos.
struct BatchTokens {
  int64_t sentences = 0, src = 0, tgt = 0;
  void add(const std::vector<BatchPtr>& batches);
  double mean_src_length() const { return static_cast<double>(src) / static_cast<double>(sentences); }
  double mean_tgt_length() const { return static_cast<double>(tgt) / static_cast<double>(sentences); }
};

}  // namespace lacuna
