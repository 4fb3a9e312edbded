#include <gmock/gmock.h>

#include "base/ragged.h"
#include "config/yaml.h"
#include "toy.h"
#include "train/trainer.h"

// Training with mask models (attention type calibrated): their own gradient, clipping and schedule, and an exact resume.
namespace lacuna {
namespace {

NamedParameters auxiliary_and_main() {
  return {{"mask.weight", at::ones({3, 2}).requires_grad_()}, {"z", at::ones({5}).requires_grad_()}};
}

std::vector<ParameterGroup> groups_of(const NamedParameters& parameters) {
  return {{"main", {parameters[1]}}, {"auxiliary", {parameters[0]}}};
}

void fill_gradient(const at::Tensor& parameter, double value) {
  parameter.mutable_grad() = at::full_like(parameter, value);
}

TEST(AuxiliaryUpdates, StandApartFromTheOthers) {
  const NamedParameters parameters = auxiliary_and_main();
  const FlatParameters flat(groups_of(parameters));
  ASSERT_EQ(flat.groups().size(), 2U);
  EXPECT_EQ(flat.groups()[1].name, "auxiliary");
  EXPECT_EQ(flat.groups()[1].begin, 16);
  EXPECT_EQ(flat.num_parameters(), 11);
  fill_gradient(parameters[0].second, 7);
  const PlacedGradients of_auxiliary = flat.gradients(flat.groups()[1]);
  ASSERT_EQ(of_auxiliary.size(), 1U);
  EXPECT_EQ(sum_of_squares(of_auxiliary), 6 * 49);
  EXPECT_EQ(sum_of_squares(flat.gradients(flat.groups()[0])), 0);
}

TEST(AuxiliaryUpdates, ComeWithTheAuxiliaryLossOnly) {
  const NamedParameters parameters = auxiliary_and_main();
  Optimizer optimizer(FlatParameters{groups_of(parameters)}, TrainOptions());
  const auto update = [&](bool with_auxiliary) {
    for (const auto& [name, parameter] : parameters) fill_gradient(parameter, with_auxiliary || name == "z" ? 1 : 0);
    optimizer.update(0.1, 1, with_auxiliary);
    return parameters[0].second.detach().clone();
  };
  const at::Tensor once = update(true);
  EXPECT_NE(once[0][0].item<double>(), 1);
  const at::Tensor plain = parameters[1].second.detach().clone();
  EXPECT_TRUE(at::equal(update(false), once));  // not even by what Adam remembers
  EXPECT_FALSE(at::equal(parameters[1].second, plain));
  EXPECT_EQ(optimizer.num_updates(), 2);
  EXPECT_EQ(optimizer.num_auxiliary_updates(), 1);
}

TEST(AuxiliaryUpdates, AreClippedOnTheirOwn) {
  const NamedParameters parameters = auxiliary_and_main();
  TrainOptions options;
  options.clip_norm = 1;
  Optimizer optimizer(FlatParameters{groups_of(parameters)}, options);
  fill_gradient(parameters[0].second, 100);
  fill_gradient(parameters[1].second, 0.1);
  const UpdateResult result = optimizer.update(0.1, 1, /*with_auxiliary=*/true);
  EXPECT_NEAR(result.gradient_norm, 0.1 * std::sqrt(5), 1e-6);
  EXPECT_NEAR(result.auxiliary_gradient_norm, 100 * std::sqrt(6), 1e-3);
  const NamedTensors state = optimizer.state();
  EXPECT_NEAR(state.at("adam.first_moment.z")[0].item<double>(), 0.1 * 0.1, 1e-6);  // left alone
  EXPECT_NEAR(state.at("adam.first_moment." + parameters[0].first)[0][0].item<double>(), 0.1 / std::sqrt(6), 1e-6);
}

TEST(AuxiliaryUpdates, ThatAreNotFiniteLeaveOutTheWholeUpdate) {
  const NamedParameters parameters = auxiliary_and_main();
  Optimizer optimizer(FlatParameters{groups_of(parameters)}, TrainOptions());
  fill_gradient(parameters[0].second, NAN);
  fill_gradient(parameters[1].second, 1);
  EXPECT_FALSE(optimizer.update(0.1, 1, /*with_auxiliary=*/true).is_finite);
  EXPECT_TRUE(at::equal(parameters[1].second, at::ones({5})));
  EXPECT_EQ(optimizer.num_auxiliary_updates(), 0);
}

ModelOptions calibrated_options() {
  ModelOptions options;
  options.d_model = 16;
  options.num_heads = 2;
  options.d_ff = 24;
  options.encoder_layers = options.decoder_layers = 1;
  options.dropout = 0.1;
  options.attention = parse_yaml("{cross: {type: calibrated, mask_every: 2}}", "test");
  return options;
}

/// A run of a small calibrated Transformer on the toy's batches.
struct CalibratedRun {
  struct Saved {
    TrainingState state;
    NamedTensors weights, optimizer;
  };

  std::shared_ptr<Transformer> model = std::make_shared<Transformer>(calibrated_options(), VocabularySizes{10, 10, true}, 1);
  Optimizer optimizer;
  ToyStream stream;
  std::vector<TrainingProgress> lines;
  std::vector<Saved> saved;
  int64_t stops_at;
  Trainer trainer;

  static TrainOptions train_options() {
    TrainOptions options = ToyRun::small_run();
    options.valid_every = options.save_every = 100;
    options.log_every = 3;
    options.max_steps = 12;
    options.lr = 0.01;
    options.precision = Precision::kFp32;
    return options;
  }

  explicit CalibratedRun(int64_t stop, std::optional<Saved> resumed = {})
      : optimizer(FlatParameters(trained_parameters(*model)), train_options()),
        stream(resumed ? resumed->state.position : DataPosition{}),
        stops_at(stop),
        trainer(train_options(), 1, transformer_loss(model, train_options(), "cpu"), stream, optimizer, LearningRate(train_options(), 16),
                hooks(), resumed ? resumed->state : TrainingState{}) {
    at::set_num_threads(1);
    if (!resumed) return;
    optimizer.load_weights(resumed->weights, "toy");
    optimizer.load_state(resumed->optimizer, resumed->state.optimizer_updates, "toy", resumed->state.auxiliary_updates);
  }

  TrainerHooks hooks() {
    TrainerHooks own;
    own.log = [this](const TrainingProgress& line) { lines.push_back(line); };
    own.save = [this](const TrainingState& state, const Scores&, bool) {
      saved.push_back(
          {TrainingState::from_json(state.to_json(), "toy"), ToyRun::copy_of(optimizer.weights()), ToyRun::copy_of(optimizer.state())});
    };
    own.is_interrupted = [this] { return trainer.state().step >= stops_at; };
    return own;
  }
};

TEST(CalibratedTrainer, GoesOnBitForBitWhereverItStopped) {
  CalibratedRun whole(100);
  whole.trainer.run();
  EXPECT_EQ(whole.optimizer.num_updates(), 12);
  EXPECT_EQ(whole.optimizer.num_auxiliary_updates(), 6);
  for (const int64_t stop : {1, 5, 6}) {
    SCOPED_TRACE("stopped at " + std::to_string(stop));
    CalibratedRun first(stop);
    first.trainer.run();
    CalibratedRun second(100, first.saved.back());
    second.trainer.run();
    EXPECT_TRUE(same(second.optimizer.weights(), whole.optimizer.weights()));
    EXPECT_TRUE(same(second.optimizer.state(), whole.optimizer.state()));
    ASSERT_FALSE(second.lines.empty());
    ASSERT_FALSE(second.lines.back().auxiliary.empty());
    EXPECT_EQ(second.lines.front().auxiliary, whole.lines[whole.lines.size() - second.lines.size()].auxiliary);
    EXPECT_EQ(second.lines.back().auxiliary, whole.lines.back().auxiliary);
  }
}

TEST(CalibratedTrainer, LogsTheMask) {
  CalibratedRun run(100);
  run.trainer.run();
  ASSERT_EQ(run.lines.size(), 4u);
  for (const TrainingProgress& line : run.lines) {
    const auto& values = line.auxiliary;
    ASSERT_EQ(values.size(), 4u);
    EXPECT_GT(values.at("mask"), 0);
    EXPECT_LT(values.at("mask"), 1);
    EXPECT_GT(values.at("mask_perturbed_loss"), 0);
    EXPECT_GT(values.at("mask_gradient_norm"), 0);
    EXPECT_LT(values.at("mask_loss"), 1);
  }
}

TEST(TrainingState, SaysNothingOfMasksWhereThereAreNone) {
  EXPECT_EQ(TrainingState().to_json().find("masks"), std::string::npos);
}

}  // namespace
}  // namespace lacuna
