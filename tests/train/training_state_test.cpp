#include "train/training_state.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "toy.h"

namespace lacuna {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ScoreHistory, AFiniteScoreIsBetterThanOneThatIsNot) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const TrainOptions options = ToyRun::small_run();
  for (const double broken : {nan, infinity, -infinity}) {
    ScoreHistory scores;
    scores.add(broken, 1, options);
    scores.add(broken, 2, options);
    EXPECT_EQ(scores.since_best, 1) << broken;
    scores.add(7, 3, options);
    EXPECT_EQ(scores.best, 7) << broken;
    scores.add(broken, 4, options);
    EXPECT_EQ(scores.best_step, 3) << broken;
  }
}

TEST(TrainingState, SurvivesItsJson) {
  const AuxiliaryWindow auxiliary = {
      .values = {{"mask_loss", -0.1}, {"mask_perturbed_loss", 0.2}, {"mask", 0.3}}, .tokens = 31, .updates = 32, .gradient_norm = 0.4};
  TrainingState state;
  state.step = 1;
  state.optimizer_updates = 2;
  state.auxiliary_updates = 3;
  state.position = {.epoch = 4, .batch = 5};
  state.tgt_tokens = 6;
  state.hours = 0.7;
  state.skipped_updates = 8;
  state.skipped_in_a_row = 9;
  state.lr_factor = 0.5;
  state.went_back_from = 22;
  state.last_saved_step = 10;
  state.validation_is_due = true;
  state.save_is_due = true;
  state.scores = {.best = 1.0 / 3, .best_step = 11, .validations = 12, .since_best = 13, .since_decrease = 14, .decreases = 15};
  state.corpus_fingerprint = "abc";
  state.valid_fingerprint = "def";
  state.products = {"onednn", "avx512", "vectors"};
  state.window.loss = 2.0 / 7;
  state.window.nll = 1.6;
  state.window.penalty = 1.7;
  state.window.correct = 18;
  state.window.tokens = 19;
  state.window.updates = 20;
  state.window.gradient_norm = 2.1;
  state.window.auxiliary = auxiliary;
  EXPECT_EQ(TrainingState::from_json(state.to_json(), "x"), state);
  for (const double best : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    state.scores.best = best;
    EXPECT_TRUE(std::isnan(TrainingState::from_json(state.to_json(), "x").scores.best)) << best;
  }
}

TEST(TrainingState, FromWhenTheLastValidatedStepWasNotedCanBeRead) {
  std::string json = TrainingState().to_json();
  const std::string next = "\"best_step\"";
  ASSERT_NE(json.find(next), std::string::npos);
  json.insert(json.find(next), "\"last_validated_step\": 5,\n    ");
  EXPECT_EQ(TrainingState::from_json(json, "x").to_json(), TrainingState().to_json());
}

TEST(TrainingState, FromBeforeTheValidationSetWasNotedCanBeRead) {
  TrainingState state;
  EXPECT_EQ(state.to_json().find("valid_fingerprint"), std::string::npos);
  EXPECT_EQ(TrainingState::from_json(state.to_json(), "x").valid_fingerprint, "");
  state.valid_fingerprint = "abc";
  EXPECT_EQ(TrainingState::from_json(state.to_json(), "x").valid_fingerprint, "abc");
}

TEST(TrainingState, FromBeforeProductsWereNotedCanBeRead) {
  const std::string json = TrainingState().to_json();
  EXPECT_EQ(json.find("products"), std::string::npos);
  EXPECT_EQ(TrainingState::from_json(json, "x").products, Products());
}

TEST(TrainingState, FromBeforeThereWerePenaltiesCanBeRead) {
  TrainingState state;
  state.window.penalty = 3;
  std::string json = state.to_json();
  const std::string penalty = "\"penalty\": 3.0,";
  ASSERT_NE(json.find(penalty), std::string::npos);
  json.erase(json.find(penalty), penalty.size());
  EXPECT_EQ(TrainingState::from_json(json, "x").window.penalty, 0);
}

TEST(TrainingState, DamageIsACheckpointError) {
  EXPECT_THROW(TrainingState::from_json("{\"step\": 1}", "runs/x/last"), CheckpointError);
  EXPECT_THROW(TrainingState::from_json("", "runs/x/last"), CheckpointError);
  EXPECT_THAT(message_of<CheckpointError>([] { TrainingState::from_json(std::string(1 << 20, '['), "x"); }), HasSubstr("nested more than"));
}

TEST(TrainingState, RefusesCountsThatAreNoWholeNumbers) {
  for (const std::string wrong : {"1e308", "-1", "0.5", "true", "[]", "9223372036854775807"}) {
    std::string json = TrainingState().to_json();
    json.replace(json.find("\"step\": 0"), 9, "\"step\": " + wrong);
    EXPECT_THAT(message_of<CheckpointError>([&] { TrainingState::from_json(json, "run/last"); }),
                AllOf(HasSubstr("run/last: trainer.json: step: "), HasSubstr("expected a whole number of 0 or more")))
        << wrong;
  }
}

}  // namespace
}  // namespace lacuna
