#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "data/batch_maker.h"
#include "ranks/group.h"
#include "text/vocabulary.h"
#include "train/adam_step.h"
#include "train/trainer.h"

namespace lacuna {

/// Sentence pairs of a few tokens, drawn from the sentence's number: batches of three sentences, `kBatches` an epoch.
inline BatchPtr toy_batch(int64_t epoch, int64_t index) {
  constexpr int64_t kSentences = 3;
  auto batch = std::make_shared<Batch>();
  std::vector<int32_t> lengths;
  std::vector<int64_t> ids;
  for (int64_t b = 0; b < kSentences; ++b) {
    const int64_t id = index * kSentences + b;
    RandomStream random(mix(static_cast<uint64_t>(epoch), static_cast<uint64_t>(id)));
    const auto length = static_cast<int32_t>(1 + random.next_below(5));
    for (int32_t i = 0; i < length; ++i) {
      batch->src.push_back(static_cast<TokenId>(3 + random.next_below(7)));
      batch->tgt.push_back(batch->src.back());
    }
    lengths.push_back(length);
    ids.push_back(id);
  }
  batch->src_shape = batch->tgt_shape = std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths, ids));
  return batch;
}

class ToyStream : public BatchStream {
 public:
  static constexpr int64_t kBatches = 7;

  explicit ToyStream(DataPosition position = {}, BatchShare share = {}) : position_(position), share_(share) {}
  BatchPtr next() override {
    BatchPtr batch = number_ % share_.size == share_.rank ? toy_batch(position_.epoch, position_.batch) : nullptr;
    number_ = (number_ + 1) % share_.per_update;
    at_end_ = ++position_.batch == kBatches;
    if (at_end_) position_ = {position_.epoch + 1, 0};
    return batch;
  }
  DataPosition position() const override { return position_; }
  bool at_epoch_end() const override { return at_end_; }
  double seconds_waited() const override { return 0; }

 private:
  DataPosition position_;
  BatchShare share_;
  int64_t number_ = 0;
  bool at_end_ = false;
};

/// The share of a rank, in a run that has given its updates their batches or begins.
inline BatchShare share_of(const Group& group, const TrainOptions& options, const TrainingState& state) {
  const int64_t per_update = state.batches_per_update > 0 ? state.batches_per_update : options.update_freq * group.size();
  return {group.rank(), group.size(), per_update};
}

/// One for both sides.
inline Vocabularies toy_vocabularies() {
  const VocabularyPtr vocabulary = token_list_from_bytes("<unk>\n<s>\n</s>\nab\n", "test");
  return {vocabulary, vocabulary};
}

/// An update in which every number counts.
inline constexpr AdamStep kSomeAdamStep = {.lr = 0.01,
                                           .gradient_scale = 0.3,
                                           .beta1 = 0.9,
                                           .beta2 = 0.98,
                                           .epsilon = 1e-9,
                                           .bias1 = 0.2,
                                           .bias2 = 0.1,
                                           .l2 = 0.01,
                                           .shrink = 0.99,
                                           .average_rate = 0.1};

/// A model that predicts each target token from the source token at its place: an embedding and a projection, with dropout keyed by
/// sentence.
struct ToyModel {
  at::Tensor embedding, projection;

  explicit ToyModel(at::ScalarType dtype = at::kFloat) {
    embedding = at::linspace(-1, 1, 10 * 4, at::TensorOptions(dtype)).view({10, 4}).cos().requires_grad_();
    projection = at::linspace(-2, 3, 4 * 10, at::TensorOptions(dtype)).view({4, 10}).sin().requires_grad_();
  }

  std::vector<std::pair<std::string, at::Tensor>> parameters() const { return {{"embedding", embedding}, {"projection", projection}}; }

  LossSums loss(const Batch& batch, const ForwardContext& context) const {
    const at::Tensor src = at::tensor(batch.src, at::kLong), tgt = at::tensor(batch.tgt, at::kLong);
    const at::Tensor log_probs = at::log_softmax((embedding.index_select(0, src) * masks(batch, context)).matmul(projection), 1);
    LossSums sums;
    sums.loss = -log_probs.gather(1, tgt.unsqueeze(1)).sum();
    sums.nll = sums.loss.detach();
    sums.correct = log_probs.argmax(1).eq(tgt).sum();
    sums.tokens = batch.tgt_tokens();
    return sums;
  }

  /// One factor of 0 or 2 a sentence and feature.
  at::Tensor masks(const Batch& batch, const ForwardContext& context) const {
    std::vector<double> factors;
    for (int64_t b = 0; b < batch.tgt_shape->num_sentences(); ++b) {
      RandomStream random(random_key(context.seed, RandomUse::kDropout, static_cast<uint64_t>(context.step), 0),
                          static_cast<uint64_t>(batch.tgt_shape->id(b)));
      std::vector<double> row(4);
      for (double& factor : row) factor = random.next_unit() < 0.5 ? 0 : 2;
      for (int32_t i = 0; i < batch.tgt_shape->length(b); ++i) factors.insert(factors.end(), row.begin(), row.end());
    }
    return at::tensor(factors, embedding.scalar_type()).view({batch.tgt_tokens(), 4});
  }
};

/// What a run of the toy model saves.
struct SavedToy {
  TrainingState state;
  Scores scores;
  bool is_scheduled = false;
  NamedTensors weights, ema, optimizer;
};

/// A run of the toy model, with everything it said written down.
struct ToyRun {
  using Saved = SavedToy;
  using Loss = std::function<LossSums(const ToyModel&, const Batch&, const ForwardContext&)>;

  ToyModel model;
  Optimizer optimizer;
  ToyStream stream;
  TrainerHooks hooks;
  std::vector<TrainingProgress> lines;
  std::vector<Saved> saved;
  std::vector<std::string> warnings;
  std::vector<int64_t> validated;
  Trainer trainer;

  static NamedTensors copy_of(const NamedTensors& tensors) {
    NamedTensors copies;
    for (const auto& [name, tensor] : tensors) copies[name] = tensor.clone();
    return copies;
  }
  static TrainOptions small_run() {
    TrainOptions options;
    options.lr = 0.05;
    options.warmup_steps = 4;
    options.valid_every = options.save_every = 5;
    options.log_every = 4;
    options.max_steps = 23;
    options.metric = ValidMetric::kLoss;
    return options;
  }

  explicit ToyRun(const TrainOptions& options, std::optional<Saved> resumed = {}, Loss loss = &ToyModel::loss,
                  at::ScalarType dtype = at::kFloat, Group& group = no_group())
      : model(dtype),
        optimizer(FlatParameters(model.parameters()), options, {}, group),
        stream(resumed ? resumed->state.position : DataPosition{}, share_of(group, options, resumed ? resumed->state : TrainingState{})),
        trainer(
            options, 1,
            [this, loss = std::move(loss)](const Batch& batch, const ForwardContext& context) { return loss(model, batch, context); },
            stream, optimizer, LearningRate(options, 4), own_hooks(), resumed ? resumed->state : TrainingState{}) {
    at::set_num_threads(1);  // the toy is too small to share
    if (!resumed) return;
    optimizer.load_weights(resumed->weights, "toy");
    optimizer.load_state(resumed->optimizer, resumed->state.optimizer_updates, "toy");
    if (optimizer.has_ema()) optimizer.load_ema_weights(resumed->ema, "toy");
  }

  std::function<bool(const ToyRun&)> interrupts = [](const ToyRun&) { return false; };
  std::function<void()> on_log = [] {};
  std::function<void()> on_save = [] {};
  std::function<void(const TrainingState&)> on_update = [](const TrainingState&) {};
  std::function<double(const ToyRun&)> score = [](const ToyRun& run) {
    return run.model.loss(*toy_batch(99, 0), {}).loss.item<double>() / static_cast<double>(toy_batch(99, 0)->tgt_tokens());
  };

 private:
  TrainerHooks own_hooks() {
    TrainerHooks own;
    own.log = [this](const TrainingProgress& line) {
      lines.push_back(line);
      on_log();
    };
    own.validate = [this]() -> std::optional<Scores> {
      if (interrupts(*this)) return {};
      validated.push_back(trainer.state().step);
      return Scores{{"loss", score(*this)}};
    };
    own.save = [this](const TrainingState& state, const Scores& scores, bool is_scheduled) {
      on_save();
      saved.push_back({TrainingState::from_json(state.to_json(), "toy"), scores, is_scheduled, copy_of(optimizer.weights()),
                       copy_of(optimizer.ema_weights()), copy_of(optimizer.state())});
    };
    own.is_interrupted = [this] { return interrupts(*this); };
    own.on_update = [this](const TrainingState& state, const UpdateProgress&) { on_update(state); };
    own.warn = [this](const std::string& text) { warnings.push_back(text); };
    return own;
  }
};

/// Bit for bit.
inline bool same(const NamedTensors& a, const NamedTensors& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, tensor] : a)
    if (!b.contains(name) || !at::equal(tensor, b.at(name))) return false;
  return true;
}

}  // namespace lacuna
