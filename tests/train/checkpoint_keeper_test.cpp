#include "train/checkpoint_keeper.h"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <thread>

#include "../base/scratch_folder.h"
#include "base/durable_files.h"
#include "base/error.h"
#include "base/files.h"
#include "toy.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

/// Checkpoints after steps 1, 2, ..., with these scores of BLEU; a score below 0: not validated.
std::vector<RunCheckpoint> scored(const std::vector<double>& bleu) {
  std::vector<RunCheckpoint> checkpoints;
  for (size_t i = 0; i < bleu.size(); ++i) {
    checkpoints.push_back({static_cast<int64_t>(i) + 1, "", {}});
    if (bleu[i] >= 0) checkpoints.back().info.scores["bleu"] = bleu[i];
  }
  return checkpoints;
}

TrainOptions keeping(int64_t last, int64_t best) {
  TrainOptions options;
  options.keep_last = last;
  options.keep_best = best;
  options.metric = ValidMetric::kBleu;
  return options;
}

TEST(StepsToKeep, AreTheLastAndTheBest) {
  EXPECT_THAT(steps_to_keep(scored({9, 30, 10, 31, 12, 11}), keeping(2, 2)), ElementsAre(2, 4, 5, 6));
}

TEST(StepsToKeep, OfEqualScoresTheEarlierIsBetter) {
  EXPECT_THAT(steps_to_keep(scored({9, 30, 30, 12}), keeping(1, 1)), ElementsAre(2, 4));
}

TEST(StepsToKeep, LowerLossIsBetter) {
  std::vector<RunCheckpoint> checkpoints(3);
  for (int64_t i = 0; i < 3; ++i) checkpoints[static_cast<size_t>(i)] = {i + 1, "", {.scores = {{"loss", static_cast<double>(i)}}}};
  TrainOptions options = keeping(1, 1);
  options.metric = ValidMetric::kLoss;
  EXPECT_THAT(steps_to_keep(checkpoints, options), ElementsAre(1, 3));
}

TEST(StepsToKeep, CheckpointsBesideTheScheduleDoNotCountAsLast) {
  std::vector<RunCheckpoint> checkpoints = scored({-1, -1, -1, -1});
  checkpoints[1].info.is_scheduled = checkpoints[3].info.is_scheduled = false;
  EXPECT_THAT(steps_to_keep(checkpoints, keeping(2, 0)), ElementsAre(1, 3, 4));  // 4: the newest always stays
}

TEST(StepsToKeep, EnoughStayToAverage) {
  TrainOptions options = keeping(1, 0);
  options.average_last = 3;
  EXPECT_THAT(steps_to_keep(scored({-1, -1, -1, -1}), options), ElementsAre(2, 3, 4));
}

class CheckpointKeeperTest : public testing::Test {
 protected:
  CheckpointKeeper keeper(const TrainOptions& options) const {
    return CheckpointKeeper(run_.string(), options, "run: x\n", vocabularies_, optimizer_);
  }
  static TrainingState at_step(int64_t step) {
    TrainingState state;
    state.step = step;
    return state;
  }
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(run_)) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  const ScratchFolder folder_;
  const fs::path run_ = folder_.path();
  ToyModel model_;
  Optimizer optimizer_{FlatParameters(model_.parameters()), TrainOptions()};
  const Vocabularies vocabularies_ = toy_vocabularies();
};

TEST_F(CheckpointKeeperTest, LinksLastAndBestAndRemovesTheRest) {
  CheckpointKeeper checkpoints = keeper(keeping(1, 1));
  checkpoints.save(at_step(10), {{"bleu", 5}}, true);
  checkpoints.save(at_step(20), {{"bleu", 9}}, true);
  checkpoints.save(at_step(30), {{"bleu", 7}}, true);
  checkpoints.save(at_step(40), {}, true);
  checkpoints.wait();
  EXPECT_THAT(entries(), ElementsAre("best", "last", "step_20", "step_40"));
  EXPECT_EQ(fs::read_symlink(run_ / "best"), "step_20");
  EXPECT_EQ(fs::read_symlink(run_ / "last"), "step_40");
}

TEST_F(CheckpointKeeperTest, WithNoneKeptForItsScoreBestIsOfThoseThatStay) {
  CheckpointKeeper checkpoints = keeper(keeping(2, 0));
  checkpoints.save(at_step(10), {{"bleu", 30}}, true);
  checkpoints.save(at_step(20), {{"bleu", 25}}, true);
  checkpoints.save(at_step(30), {{"bleu", 20}}, true);
  checkpoints.wait();
  EXPECT_THAT(entries(), ElementsAre("best", "last", "step_20", "step_30"));
  EXPECT_EQ(fs::read_symlink(run_ / "best"), "step_20");
  checkpoints.tidy();
  EXPECT_EQ(fs::read_symlink(run_ / "best"), "step_20");
  checkpoints.save(at_step(40), {}, true);
  checkpoints.save(at_step(50), {}, true);
  checkpoints.wait();
  EXPECT_THAT(entries(), ElementsAre("last", "step_40", "step_50"));  // nothing has a score
}

TEST_F(CheckpointKeeperTest, OnlyTheNewestHoldsTrainerState) {
  CheckpointKeeper checkpoints = keeper(keeping(3, 0));
  checkpoints.save(at_step(10), {}, true);
  checkpoints.save(at_step(20), {}, true);
  checkpoints.wait();
  EXPECT_FALSE(has_trainer_state((run_ / "step_10").string()));
  EXPECT_FALSE(fs::exists(run_ / "step_10" / "trainer.safetensors"));
  EXPECT_TRUE(has_trainer_state((run_ / "step_20").string()));
  EXPECT_NO_THROW(load_checkpoint((run_ / "step_10").string()));
  EXPECT_THROW(load_checkpoint((run_ / "step_10").string(), true), CheckpointError);
}

TEST_F(CheckpointKeeperTest, BesideAnInterruptionsTheOneBeforeHoldsTrainerStateToo) {
  CheckpointKeeper checkpoints = keeper(keeping(3, 0));
  checkpoints.save(at_step(10), {}, true);
  checkpoints.save(at_step(20), {}, true);
  checkpoints.save(at_step(23), {}, false);
  checkpoints.wait();
  EXPECT_FALSE(has_trainer_state((run_ / "step_10").string()));
  EXPECT_TRUE(has_trainer_state((run_ / "step_20").string()));
  EXPECT_TRUE(has_trainer_state((run_ / "step_23").string()));
  checkpoints.save(at_step(25), {{"bleu", 1}}, false);
  checkpoints.save(at_step(27), {}, false);
  checkpoints.wait();
  EXPECT_THAT(entries(), ElementsAre("best", "last", "step_10", "step_20", "step_25", "step_27"));
  EXPECT_FALSE(has_trainer_state((run_ / "step_20").string()));
  EXPECT_TRUE(has_trainer_state((run_ / "step_25").string()));
}

TEST_F(CheckpointKeeperTest, WritesWhatHasProvedGood) {
  CheckpointKeeper checkpoints = keeper(keeping(1, 0));
  checkpoints.save(at_step(10), {}, true);
  checkpoints.drop_unproved();
  checkpoints.wait();
  EXPECT_FALSE(fs::exists(run_ / "step_10"));
  checkpoints.save(at_step(20), {}, true);
  checkpoints.confirm();
  checkpoints.drop_unproved();
  checkpoints.wait();
  EXPECT_TRUE(fs::exists(run_ / "step_20"));
}

TEST_F(CheckpointKeeperTest, TheOneBeforeStaysUntilTheNewestHasProvedGood) {
  const auto with_state = [&] {
    std::vector<std::string> names;
    for (const std::string& name : entries())
      if (name.starts_with("step_") && has_trainer_state((run_ / name).string())) names.push_back(name);
    return names;
  };
  {
    CheckpointKeeper interrupted = keeper(keeping(1, 0));
    interrupted.save(at_step(10), {}, true);
    interrupted.confirm();
    interrupted.save(at_step(20), {}, true);
    interrupted.wait(/*goes_on=*/true);
    EXPECT_THAT(with_state(), ElementsAre("step_10", "step_20"));
  }
  CheckpointKeeper next = keeper(keeping(1, 0));
  next.tidy();
  EXPECT_THAT(with_state(), ElementsAre("step_10", "step_20"));
  next.save(at_step(30), {}, true);
  next.confirm();
  next.wait();
  EXPECT_THAT(entries(), ElementsAre("last", "step_30"));
}

TEST_F(CheckpointKeeperTest, OfOneAndTheSameWeightsTheLastIsWritten) {
  CheckpointKeeper checkpoints = keeper(keeping(5, 0));
  TrainingState skipping = at_step(12);
  skipping.skipped_in_a_row = 2;
  checkpoints.save(at_step(10), {}, true);
  checkpoints.save(skipping, {}, true);
  checkpoints.save(at_step(14), {}, true);
  checkpoints.wait();
  EXPECT_THAT(entries(), ElementsAre("last", "step_12", "step_14"));
}

TEST_F(CheckpointKeeperTest, NumbersThatAreNoneAreNotSavedAndPushNothingOut) {
  TrainOptions options = keeping(1, 0);
  options.ema_decay = 0.9;
  Optimizer optimizer(FlatParameters(model_.parameters()), options);
  CheckpointKeeper checkpoints(run_.string(), options, "run: x\n", vocabularies_, optimizer);
  checkpoints.save(at_step(10), {}, true);
  for (const auto& [tensors, name] : {std::pair(optimizer.state(), "adam.second_moment.projection"),
                                      {optimizer.ema_weights(), "projection"},
                                      {optimizer.weights(), "projection"}}) {
    const Tensor value = tensors.at(name)[1][2];
    const double before = value.item<double>();
    value.fill_(std::numeric_limits<double>::quiet_NaN());
    EXPECT_THAT(message_of<DivergedError>([&] { checkpoints.save(at_step(20), {}, true); }),
                HasSubstr(std::string(name) + " has 1 of 40 values that are not finite"));
    value.fill_(before);
  }
  checkpoints.wait();
  EXPECT_THAT(entries(), ElementsAre("last", "step_10"));
}

TEST_F(CheckpointKeeperTest, WhatACrashHasLeftOfADroppedTrainerStateGoes) {
  CheckpointKeeper checkpoints = keeper(keeping(3, 0));
  checkpoints.save(at_step(10), {}, true);
  checkpoints.save(at_step(20), {}, true);
  checkpoints.wait();
  const fs::path left = run_ / "step_10" / "trainer.safetensors";
  fs::copy_file(run_ / "step_20" / "trainer.safetensors", left);
  checkpoints.tidy();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_NO_THROW(load_checkpoint((run_ / "step_20").string(), true));
}

TEST_F(CheckpointKeeperTest, ACheckpointHoldsWhatTheRunNeedsToGoOn) {
  TrainingState state = at_step(10);
  state.position = {2, 3};
  keeper(keeping(1, 0)).save(state, {{"bleu", 5}}, true);
  const CheckpointContents contents = load_checkpoint((run_ / "last").string(), true);
  EXPECT_TRUE(same(contents.weights, optimizer_.weights()));
  EXPECT_TRUE(same(*contents.trainer_tensors, optimizer_.state()));
  EXPECT_EQ(TrainingState::from_json(contents.trainer_json, "x").position, state.position);
  EXPECT_EQ(contents.info.scores.at("bleu"), 5);
}

TEST_F(CheckpointKeeperTest, AStepSavedAgainKeepsTheScoresOfItsValidation) {
  CheckpointKeeper checkpoints = keeper(keeping(1, 1));
  checkpoints.save(at_step(10), {{"bleu", 5}}, false);
  checkpoints.save(at_step(10), {}, true);
  checkpoints.wait();
  EXPECT_EQ(load_checkpoint((run_ / "last").string()).info.scores, (Scores{{"bleu", 5}}));
  EXPECT_EQ(fs::read_symlink(run_ / "best"), "step_10");
}

TEST_F(CheckpointKeeperTest, WritesWhatThereWasWhileTrainingGoesOn) {
  NamedTensors before;
  for (const auto& [name, tensor] : optimizer_.weights()) before[name] = tensor.clone();
  CheckpointKeeper checkpoints = keeper(keeping(1, 0));
  checkpoints.save(at_step(10), {}, true);
  for (const auto& [name, tensor] : optimizer_.weights()) tensor.add_(1);
  checkpoints.wait();
  EXPECT_TRUE(same(load_checkpoint((run_ / "last").string()).weights, before));
}

TEST_F(CheckpointKeeperTest, SaysLaterThatACheckpointCouldNotBeWritten) {
  CheckpointKeeper checkpoints = keeper(keeping(1, 0));
  checkpoints.save(at_step(10), {}, true);
  checkpoints.wait();
  EXPECT_NO_THROW(checkpoints.check());  // nothing is under way
  fs::remove_all(run_);
  write_file_atomically(run_, "a file where the run's folder was");
  checkpoints.save(at_step(20), {}, true);
  EXPECT_THROW(checkpoints.wait(), MachineError);
  checkpoints.save(at_step(30), {}, true);
  checkpoints.confirm();
  const auto check_for_ten_seconds = [&] {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (; std::chrono::steady_clock::now() < deadline; std::this_thread::sleep_for(std::chrono::milliseconds(1))) checkpoints.check();
  };
  EXPECT_THROW(check_for_ten_seconds(), MachineError);
  checkpoints.save(at_step(40), {}, true);  // an error that nobody asks for is logged
}

TEST_F(CheckpointKeeperTest, WritesNothingWhereTheRunFolderIsGone) {
  const auto refuse = [] { throw MachineError("gone"); };
  CheckpointKeeper checkpoints(folder_ / "run", keeping(1, 0), "run: x\n", vocabularies_, optimizer_, refuse);
  checkpoints.save(at_step(10), {}, true);
  EXPECT_THAT(message_of<MachineError>([&] { checkpoints.wait(); }), HasSubstr("gone"));
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(CheckpointKeeperTest, AnInterruptionsCheckpointGoesWithTheNext) {
  CheckpointKeeper checkpoints = keeper(keeping(2, 0));
  checkpoints.save(at_step(10), {}, true);
  checkpoints.save(at_step(13), {}, false);
  checkpoints.wait();
  EXPECT_THAT(entries(), ElementsAre("last", "step_10", "step_13"));
  checkpoints.save(at_step(20), {}, true);
  checkpoints.wait();
  EXPECT_THAT(entries(), ElementsAre("last", "step_10", "step_20"));
}

TEST_F(CheckpointKeeperTest, ADamagedOlderCheckpointIsLeftAloneAndTheNextIsSaved) {
  CheckpointKeeper checkpoints = keeper(keeping(1, 1));
  checkpoints.save(at_step(10), {{"bleu", 5}}, true);
  checkpoints.wait();
  fs::resize_file(run_ / "step_10" / "checkpoint.json", 7);
  checkpoints.save(at_step(20), {{"bleu", 4}}, true);
  checkpoints.save(at_step(30), {{"bleu", 3}}, true);
  checkpoints.wait();
  EXPECT_THAT(entries(), ElementsAre("best", "last", "step_10", "step_20", "step_30"));
  EXPECT_EQ(fs::read_symlink(run_ / "best"), "step_20");
  EXPECT_EQ(fs::read_symlink(run_ / "last"), "step_30");
}

TEST_F(CheckpointKeeperTest, LinksThatACopyHasFollowedAreLinksAgain) {
  CheckpointKeeper checkpoints = keeper(keeping(1, 1));
  checkpoints.save(at_step(10), {{"bleu", 5}}, true);
  checkpoints.wait();
  for (const char* const name : {"best", "last"}) {
    fs::remove(run_ / name);
    fs::copy(run_ / "step_10", run_ / name);
  }
  checkpoints.tidy();
  EXPECT_EQ(fs::read_symlink(run_ / "best"), "step_10");
  EXPECT_EQ(fs::read_symlink(run_ / "last"), "step_10");
}

TEST_F(CheckpointKeeperTest, AFolderOfItsOwnWhereALinkShouldBeStaysAndIsNamed) {
  CheckpointKeeper checkpoints = keeper(keeping(1, 1));
  checkpoints.save(at_step(10), {{"bleu", 5}}, true);
  checkpoints.wait();
  CheckpointContents other = load_checkpoint((run_ / "best").string());
  for (auto& [name, tensor] : other.weights) tensor = tensor + 1;
  fs::remove(run_ / "best");
  save_checkpoint((run_ / "best").string(), other);
  EXPECT_THAT(message_of<CheckpointError>([&] { checkpoints.tidy(); }), HasSubstr("best is a folder; expected a link to a checkpoint"));
  EXPECT_TRUE(fs::exists(run_ / "best" / "model.safetensors"));
}

TEST_F(CheckpointKeeperTest, CountsTheBytesOfAllThatStays) {
  const uint64_t weights = (10 * 4 + 4 * 10) * 4, moments = 2 * weights;
  EXPECT_EQ(keeper(keeping(1, 0)).run_bytes(), weights + moments);
  EXPECT_EQ(keeper(keeping(3, 2)).run_bytes(), 5 * weights + moments);
  TrainOptions averaging = keeping(3, 2);
  averaging.average_last = 5;
  EXPECT_EQ(keeper(averaging).run_bytes(), (5 + 2 + 1) * weights + moments);
  averaging.ema_decay = 0.9;
  const Optimizer optimizer(FlatParameters(model_.parameters()), averaging);
  EXPECT_EQ(CheckpointKeeper("x", averaging, "", vocabularies_, optimizer).run_bytes(), (2 * (5 + 2) + 1) * weights + moments);
}

TEST_F(CheckpointKeeperTest, AsksForRoomForTwoCheckpoints) {
  const uint64_t parameters = 10 * 4 + 4 * 10;
  EXPECT_EQ(keeper(keeping(1, 0)).checkpoint_bytes(), parameters * 4 * 3);
  EXPECT_NO_THROW(keeper(keeping(1, 0)).require_disk_room());
  EXPECT_NO_THROW(CheckpointKeeper((run_ / "later").string(), keeping(1, 0), "", vocabularies_, optimizer_).require_disk_room());
  const CheckpointKeeper nowhere("/proc/run", keeping(1, 0), "", vocabularies_, optimizer_);  // where nothing is free, whoever asks
  EXPECT_THAT(message_of<MachineError>([&] { nowhere.require_disk_room(); }),
              HasSubstr("/proc/run has 0 MiB free; two checkpoints need 1 MiB. Make room"));
  EXPECT_NO_THROW(nowhere.require_disk_room(1 << 20));
}

}  // namespace
}  // namespace lacuna
