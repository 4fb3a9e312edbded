#include "search/ensemble.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace lacuna {
namespace {

/// The caches of all models, which advance together.
class EnsembleCache : public DecoderCache {
 public:
  explicit EnsembleCache(std::vector<std::unique_ptr<DecoderCache>> members) : members_(std::move(members)) {}

  DecoderCache& member(size_t model) { return *members_[model]; }
  void select(const std::vector<int32_t>& parents) override {
    for (const auto& member : members_) member->select(parents);
  }
  void reserve(int64_t slots) override {
    for (const auto& member : members_) member->reserve(slots);
  }
  void join(DecoderCache& fresh) override {
    auto& other = dynamic_cast<EnsembleCache&>(fresh);
    for (size_t i = 0; i < members_.size(); ++i) members_[i]->join(other.member(i));
  }
  const std::vector<int32_t>& sentences() const override { return members_.front()->sentences(); }
  void set_candidates(const std::vector<std::vector<int32_t>>& candidates) override {
    for (const auto& member : members_) member->set_candidates(candidates);
  }
  void set_alignment(AlignmentSource source) override {
    for (const auto& member : members_) member->set_alignment(source);
  }
  const std::vector<std::vector<float>>& alignment() const override { return alignment_; }

  /// Averages the members' alignments. To be called after each step.
  void average_alignments() {
    alignment_ = members_.front()->alignment();
    for (size_t row = 0; row < alignment_.size(); ++row)
      for (size_t token = 0; token < alignment_[row].size(); ++token) {
        float sum = 0;
        for (const auto& member : members_) sum += member->alignment()[row][token];
        alignment_[row][token] = sum / static_cast<float>(members_.size());
      }
  }

 private:
  std::vector<std::unique_ptr<DecoderCache>> members_;
  std::vector<std::vector<float>> alignment_;
};

}  // namespace

/// Unlike at::logsumexp, this loop gives the same bits for a row whatever the number of rows.
Tensor log_mean_exp(const std::vector<Tensor>& members) {
  std::vector<const float*> inputs;
  inputs.reserve(members.size());
  for (const Tensor& member : members) inputs.push_back(member.const_data_ptr<float>());
  Tensor mean = at::empty_like(members.front());
  float* const output = mean.data_ptr<float>();
  const float log_count = std::log(static_cast<float>(members.size()));
  at::parallel_for(0, mean.numel(), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float top = inputs.front()[i], sum = 0;
      for (const float* input : inputs) top = std::max(top, input[i]);
      for (const float* input : inputs) sum += std::exp(input[i] - top);
      output[i] = std::isinf(top) ? top : top + std::log(sum) - log_count;
    }
  });
  return mean;
}

Ensemble::Ensemble(std::vector<StepModelPtr> models) : models_(std::move(models)) {
  if (models_.empty()) throw std::logic_error("an ensemble needs a model");
}

std::unique_ptr<DecoderCache> Ensemble::start(const std::vector<std::vector<TokenId>>& sources) {
  std::vector<std::unique_ptr<DecoderCache>> members;
  for (const auto& model : models_) members.push_back(model->start(sources));
  return std::make_unique<EnsembleCache>(std::move(members));
}

Logits Ensemble::step(const std::vector<TokenId>& tokens, DecoderCache& cache) {
  auto& ensemble_cache = dynamic_cast<EnsembleCache&>(cache);
  std::vector<Tensor> log_probs;  // (N, V) each
  for (size_t i = 0; i < models_.size(); ++i)
    log_probs.push_back(models_[i]->step(tokens, ensemble_cache.member(i)).log_probs().cpu().contiguous());
  ensemble_cache.average_alignments();
  return Logits(log_mean_exp(log_probs));
}

int64_t Ensemble::max_positions() const {
  int64_t shortest = 0;
  for (const auto& model : models_)
    if (const int64_t limit = model->max_positions(); limit > 0) shortest = shortest == 0 ? limit : std::min(shortest, limit);
  return shortest;
}

bool Ensemble::is_thread_safe() const {
  return std::all_of(models_.begin(), models_.end(), [](const StepModelPtr& model) { return model->is_thread_safe(); });
}

void check_same_vocabularies(const std::vector<Vocabularies>& vocabularies, const std::vector<std::string>& names) {
  const auto check = [&](const Vocabulary& first, const Vocabulary& other, size_t i, const std::string& side) {
    // Bytes, not vocabulary_difference(): each source is split once for all models, and equal pieces with other scores are split otherwise.
    if (first.serialized() == other.serialized()) return;
    throw DataError(names[i] + ": its " + side + " vocabulary (" + std::to_string(other.size()) + " pieces) is not that of " +
                    names.front() + " (" + std::to_string(first.size()) +
                    " pieces); the models of an ensemble must share their vocabularies: train them with the same data.spm_model");
  };
  for (size_t i = 1; i < vocabularies.size(); ++i) {
    check(*vocabularies.front().src, *vocabularies[i].src, i, "source");
    check(*vocabularies.front().tgt, *vocabularies[i].tgt, i, "target");
  }
}

}  // namespace lacuna
