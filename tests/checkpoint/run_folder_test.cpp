#include "checkpoint/run_folder.h"

#include "scratch.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class RunFolder : public testing::Test {
 protected:
  void save(int64_t step, const std::map<std::string, double>& scores = {}, bool is_scheduled = true) {
    CheckpointContents contents = small_checkpoint();
    contents.info = {.step = step, .scores = scores, .is_scheduled = is_scheduled};
    save_checkpoint(checkpoint_path(run_, step), contents);
  }
  std::string at(const std::string& name) const { return folder_ / name; }

  ScratchFolder folder_;
  const std::string run_ = folder_.path().string();
};

TEST_F(RunFolder, ListsCheckpointsByStepNotByName) {
  for (const int64_t step : {900, 1000, 20}) save(step);
  fs::create_directory(folder_ / "step_x");
  fs::create_directory(folder_ / "tensorboard");
  std::vector<int64_t> steps;
  for (const RunCheckpoint& checkpoint : checkpoints_of(run_)) steps.push_back(checkpoint.step);
  EXPECT_THAT(steps, ElementsAre(20, 900, 1000));
  EXPECT_EQ(newest_checkpoint_of(run_), at("step_1000"));
}

TEST_F(RunFolder, AnEmptyOneHasNoNewestCheckpoint) {
  EXPECT_EQ(newest_checkpoint_of(run_), "");
  EXPECT_EQ(newest_checkpoint_of(run_ + "/missing"), "");
}

TEST_F(RunFolder, TranslatesWithAveragedElseBestElseLast) {
  save(1);
  fs::create_symlink("step_1", folder_ / "last");
  EXPECT_EQ(resolve_checkpoint(run_), at("last"));
  fs::create_symlink("step_1", folder_ / "best");
  EXPECT_EQ(resolve_checkpoint(run_), at("best"));
  save_checkpoint(at("averaged"), small_checkpoint());
  EXPECT_EQ(resolve_checkpoint(run_), at("averaged"));
  EXPECT_EQ(resolve_checkpoint(at("step_1")), at("step_1"));
}

TEST_F(RunFolder, ThatTrainsIsReadAgainWhereACheckpointHasGone) {
  save(1);
  fs::create_symlink("step_1", folder_ / "last");
  int reads = 0;
  const auto read = [&] {
    const std::string folder = fs::canonical(resolve_checkpoint(run_));
    if (++reads == 1) {
      save(2);
      link_checkpoint(run_, "last", 2);
      fs::remove_all(at("step_1"));
    }
    return read_checkpoint_info(folder).step;
  };
  EXPECT_EQ(read_while_replaced(run_, read), 2);
  fs::remove(at("step_2/checkpoint.json"));
  EXPECT_THAT(checkpoint_error_of([&] { read_while_replaced(run_, read); }), HasSubstr("checkpoint.json is missing"));
  EXPECT_EQ(reads, 3);
}

TEST_F(RunFolder, AFolderWithoutCheckpointIsSaidSo) {
  EXPECT_THAT(checkpoint_error_of([&] { resolve_checkpoint(run_); }), HasSubstr("neither a checkpoint"));
}

TEST_F(RunFolder, WhatIsNoFolderIsSaidSoWithBothThatWouldDo) {
  constexpr const char* kExpected = "; expected a run folder, or the folder of a checkpoint such as RUN/best";
  save(1);
  EXPECT_EQ(checkpoint_error_of([&] { resolve_checkpoint(at("missing")); }), at("missing") + " does not exist" + kExpected);
  EXPECT_EQ(checkpoint_error_of([&] { resolve_checkpoint(at("step_1/model.safetensors")); }),
            at("step_1/model.safetensors") + " is a file" + kExpected);
}

TEST_F(RunFolder, LastCheckpointsAreTheScheduledOnes) {
  for (const int64_t step : {1, 2, 3, 4}) save(step, {}, step != 3);
  EXPECT_THAT(last_checkpoints(run_, 2), ElementsAre(at("step_2"), at("step_4")));
  EXPECT_THAT(last_checkpoints(run_, 9), ElementsAre(at("step_1"), at("step_2"), at("step_4")));
}

TEST_F(RunFolder, ACheckpointThatIsNotScheduledIsNamedIfThereIsNoOther) {
  save(150, {}, false);
  EXPECT_THAT(checkpoint_error_of([&] { last_checkpoints(run_, 1); }),
              HasSubstr("holds no scheduled checkpoint yet; " + at("step_150") + " is of an interruption or a validation"));
}

TEST_F(RunFolder, WhatScoresItFollowsItsOptions) {
  Options options = small_options();
  options.run = run_;
  save_checkpoint(averaged_path(run_), small_checkpoint());
  EXPECT_EQ(checkpoint_to_score(options), at("last"));
  save(1);
  fs::create_symlink("step_1", folder_ / "best");
  EXPECT_EQ(checkpoint_to_score(options), at("best"));
  options.train.average_last = 2;
  EXPECT_EQ(checkpoint_to_score(options), at("averaged"));
}

TEST_F(RunFolder, CountsTheBytesOfItsCheckpoints) {
  EXPECT_EQ(bytes_of_checkpoints(run_), 0u);
  save(1);
  const uint64_t one = bytes_of_checkpoints(run_);
  EXPECT_GT(one, bytes_of_weights(at("step_1")));
  fs::create_symlink("step_1", folder_ / "last");
  EXPECT_EQ(bytes_of_checkpoints(run_), one);
}

TEST_F(RunFolder, ADamagedOlderCheckpointDoesNotStandInTheWayOfTheLast) {
  for (const int64_t step : {1, 2, 3}) save(step);
  fs::resize_file(folder_ / "step_1/checkpoint.json", 5);
  EXPECT_THAT(last_checkpoints(run_, 2), ElementsAre(at("step_2"), at("step_3")));
  EXPECT_THAT(checkpoint_error_of([&] { last_checkpoints(run_, 3); }), HasSubstr("step_1/checkpoint.json is damaged"));
  EXPECT_THAT(checkpoint_error_of([&] { checkpoints_of(run_); }), HasSubstr("step_1/checkpoint.json is damaged"));
  std::string told;
  EXPECT_EQ(checkpoints_of(run_, [&](const std::string& damage) { told = damage; }).size(), 2u);
  EXPECT_THAT(told, HasSubstr("step_1/checkpoint.json is damaged"));
  told.clear();
  EXPECT_THAT(last_checkpoints(run_, 3, [&](const std::string& damage) { told = damage; }), ElementsAre(at("step_2"), at("step_3")));
  EXPECT_THAT(told, HasSubstr("step_1/checkpoint.json is damaged"));
}

TEST_F(RunFolder, BestCheckpointsAreByScore) {
  save(1, {{"bleu", 7}, {"loss", 2}});
  save(2, {{"bleu", 9}, {"loss", 3}});
  save(3, {{"bleu", 8}, {"loss", 1}});
  save(4);
  EXPECT_THAT(best_checkpoints(run_, 2, "bleu", false), ElementsAre(at("step_2"), at("step_3")));
  EXPECT_THAT(best_checkpoints(run_, 1, "loss", true), ElementsAre(at("step_3")));
}

TEST_F(RunFolder, AScoreThatNoneHasIsNamed) {
  save(1, {{"loss", 2}});
  EXPECT_THAT(checkpoint_error_of([&] { best_checkpoints(run_, 1, "bleu", false); }), HasSubstr("has the score bleu; scores there: loss"));
  EXPECT_THAT(checkpoint_error_of([&] { last_checkpoints(run_ + "/missing", 1); }), HasSubstr("holds no checkpoints"));
}

}  // namespace
}  // namespace lacuna
