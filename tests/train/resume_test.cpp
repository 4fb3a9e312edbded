#include "train/resume.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "../base/scratch_folder.h"
#include "base/error.h"
#include "base/files.h"
#include "config/load.h"
#include "kernels/bf16_product.h"
#include "toy.h"
#include "train/checkpoint_keeper.h"
#include "train/run_lock.h"
#include "train/run_replacement.h"
#include "train/transformer_loss.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

TEST(ForbiddenDifferences, AreNoneForLengthFrequencyAndSearch) {
  Options stored, now;
  now.train.max_steps = 7;
  now.train.valid_every = 8;
  now.train.patience = 9;
  now.train.keep_best = 10;
  now.threads = 2;
  now.translate.beam_size = 3;
  now.data.src_lang = "de";
  now.data.test.push_back({.name = "", .src = "a", .tgt = "b"});
  EXPECT_TRUE(forbidden_differences(stored, now).empty());
}

TEST(ForbiddenDifferences, NameModelAndLearning) {
  Options stored, now;
  now.model.d_ff = 7;
  now.train.lr = 1;
  now.seed = 5;
  std::vector<std::string> keys;
  for (const ConfigDifference& difference : forbidden_differences(stored, now)) keys.push_back(difference.key);
  EXPECT_THAT(keys, testing::ElementsAre("model.d_ff", "seed", "train.lr"));
}

TEST(DecidedPrecision, IsBf16OnAGpuUnlessSaidOtherwise) {
  EXPECT_EQ(decided_precision(Precision::kAuto, "cuda"), Precision::kBf16);
  EXPECT_EQ(decided_precision(Precision::kAuto, "cuda:1"), Precision::kBf16);
  EXPECT_EQ(decided_precision(Precision::kFp32, "cuda"), Precision::kFp32);
  EXPECT_EQ(decided_precision(Precision::kAuto, "cpu"), has_bf16_instructions() ? Precision::kBf16 : Precision::kFp32);
}

TEST(ForbiddenDifferences, NameTheKindOfDeviceButNotWhichGpu) {
  Options stored, now;
  stored.device = "cuda";
  now.device = "cuda:1";
  EXPECT_TRUE(forbidden_differences(stored, now).empty());
  now.device = "cpu";
  EXPECT_EQ(forbidden_differences(stored, now).size(), 1u);
}

TEST(ForbiddenDifferences, NameALengthThatTheLearningRateDependsOn) {
  for (const Schedule schedule : {Schedule::kLinear, Schedule::kCosine}) {
    Options stored, now;
    stored.train.schedule = now.train.schedule = schedule;
    stored.train.max_steps = 100;
    now.train.max_steps = 200;
    EXPECT_EQ(forbidden_differences(stored, now).size(), 1u);
    now.train.decay_steps = 100;
    EXPECT_TRUE(forbidden_differences(stored, now).empty());
  }
}

TEST(ForbiddenDifferences, FilesOfTheCorpusMayMoveButNotItsWeight) {
  Options stored, now;
  stored.data.train.push_back({.name = "", .src = "a", .tgt = "b"});
  now.data.train.push_back({.name = "", .src = "x/a", .tgt = "x/b"});
  EXPECT_TRUE(forbidden_differences(stored, now).empty());
  now.data.train[0].weight = 2;
  EXPECT_EQ(forbidden_differences(stored, now).size(), 1u);
  now.train.reset = {"data"};
  EXPECT_EQ(forbidden_differences(stored, now).size(), 1u);
  now.data.train.push_back({.name = "", .src = "c", .tgt = "d"});
  EXPECT_TRUE(forbidden_differences(stored, now).empty());
}

TEST(RequireSameRun, RefusesAnotherConfigurationUnlessItMayGo) {
  const ScratchFolder folder;
  Options options;
  options.run = folder.path().string();
  EXPECT_NO_THROW(require_same_run(options));
  folder.write("config.yaml", to_yaml(options));
  EXPECT_NO_THROW(require_same_run(options));
  options.train.lr = 1;
  EXPECT_THROW(require_same_run(options), ConfigError);
  options.train.overwrite = true;
  EXPECT_NO_THROW(require_same_run(options));
}

TEST(RequireSameRun, SaysHowToTrainOnWhereTheLearningRateFallsUntilTheEnd) {
  const ScratchFolder folder;
  Options options;
  options.run = folder.path().string();
  options.train.schedule = Schedule::kCosine;
  options.train.max_steps = 5000;
  folder.write("config.yaml", to_yaml(options));
  options.train.max_steps = 6000;
  EXPECT_THAT(message_of<ConfigError>([&] { require_same_run(options); }),
              AllOf(HasSubstr("train.max_steps: 5000 and 6000"), HasSubstr("set train.decay_steps: 5000")));
}

/// A run of another configuration in the folder, which may go.
class OtherRun : public testing::Test {
 protected:
  OtherRun() {
    options_.run = folder_.path().string();
    folder_.write("config.yaml", to_yaml(options_));
    folder_.write("spm.model", "theirs");
    fs::create_directory(folder_ / "step_20");
    folder_.write("step_20/manifest.json", "{}");
    fs::create_symlink("step_20", folder_ / "best");
    options_.train.lr = 1;
    options_.train.overwrite = true;
  }
  std::string refusal() const {
    return message_of<ConfigError>([&] { replaces_run(options_); });
  }

  const ScratchFolder folder_;
  Options options_;
};

TEST_F(OtherRun, IsToBeReplaced) {
  EXPECT_TRUE(replaces_run(options_));
  options_.train.lr = Options().train.lr;
  EXPECT_FALSE(replaces_run(options_));  // it is this one, and goes on
}

TEST_F(OtherRun, IsNothingToStartFrom) {
  for (const std::string& part : {folder_ / "best", folder_ / "step_20", options_.run}) {
    options_.train.init_from = part;
    EXPECT_THAT(refusal(), HasSubstr("train.init_from is " + part + ", a part of the run"));
  }
  options_.train.init_from.clear();
  options_.data.spm_model = folder_ / "spm.model";
  EXPECT_THAT(refusal(), HasSubstr("data.spm_model is " + options_.data.spm_model));
  options_.data.spm_model = folder_.write("mine.model", "mine");  // the user's own
  EXPECT_TRUE(replaces_run(options_));
}

TEST_F(OtherRun, StaysWholeUntilTheNewOneTakesItsPlace) {
  const size_t entries = folder_.num_entries();
  { const RunReplacement given_up(options_); }
  EXPECT_EQ(folder_.num_entries(), entries);
  const RunReplacement replacement(options_);
  write_file_atomically(fs::path(replacement.folder()) / "spm.model", "ours");
  EXPECT_EQ(bytes_of(folder_ / "spm.model"), "theirs");
  folder_.write("notes.txt", "the user's");
  replacement.take_place();
  EXPECT_EQ(bytes_of(folder_ / "spm.model"), "ours");
  EXPECT_EQ(bytes_of(folder_ / "notes.txt"), "the user's");
  for (const char* const name : {"config.yaml", "step_20", "best"}) EXPECT_FALSE(fs::exists(folder_ / name)) << name;
}

TEST_F(OtherRun, SharesACacheThatIsNamedInItsFolder) {
  fs::create_directory(folder_ / "cache");
  folder_.write("cache/ids", "1");
  options_.data.cache = folder_ / "cache";
  RunReplacement(options_).take_place();
  EXPECT_TRUE(fs::exists(folder_ / "cache/ids"));
  options_.data.cache.clear();
  RunReplacement(options_).take_place();
  EXPECT_FALSE(fs::exists(folder_ / "cache"));
}

TEST(CheckCorpus, AcceptsTheSameAndRefusesAnother) {
  TrainingState state;
  state.position = {2, 5};
  state.corpus_fingerprint = "old";
  check_corpus(state, "old", {}, "runs/x/last");
  EXPECT_EQ(state.position, (DataPosition{2, 5}));
  EXPECT_THROW(check_corpus(state, "new", {"optimizer"}, "runs/x/last"), DataError);
}

TEST(CheckCorpus, AResetStartsTheNewCorpusAtItsBeginningAndSaysSo) {
  TrainingState state;
  state.position = {2, 5};
  state.corpus_fingerprint = "old";
  testing::internal::CaptureStderr();
  check_corpus(state, "new", {"data"}, "runs/x/last");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("runs/x/last was trained on up to epoch 3, batch 5"));
  EXPECT_EQ(state.position, DataPosition{});
  EXPECT_EQ(state.corpus_fingerprint, "new");
}

TEST(CheckValidationSet, ScoresOfAnotherSetCountAnewAndTheLogSaysSo) {
  TrainingState state;
  check_validation_set(state, "old");
  EXPECT_EQ(state.valid_fingerprint, "old");
  const TrainOptions options = ToyRun::small_run();
  state.scores.add(1, 5, options);
  state.scores.add(2, 10, options);
  state.scores.decreases = 3;
  check_validation_set(state, "old");
  EXPECT_EQ(state.scores.since_best, 1);
  testing::internal::CaptureStderr();
  check_validation_set(state, "new");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("data.valid: the first set is another"));
  EXPECT_EQ(state.valid_fingerprint, "new");
  EXPECT_EQ(state.scores.validations, 0);
  EXPECT_EQ(state.scores.since_best, 0);
  EXPECT_EQ(state.scores.decreases, 3);
  state.scores.add(7, 15, options);  // worse than any of before
  EXPECT_EQ(state.scores.best_step, 15);
}

TEST(CheckValidationSet, ScoresOfASetThatIsNotKnownStay) {
  TrainingState state;
  state.scores.add(1, 5, ToyRun::small_run());
  check_validation_set(state, "new");
  EXPECT_EQ(state.scores.validations, 1);
  EXPECT_EQ(state.valid_fingerprint, "new");
}

class InitFrom : public testing::Test {
 protected:
  InitFrom() {
    fs::remove_all(run_);
    fs::create_directories(run_);
    const VocabularyPtr vocabulary = token_list_from_bytes("<unk>\n<s>\n</s>\nab\n", "test");
    TrainingState state;
    state.step = 40;
    state.optimizer_updates = 39;
    state.position = {2, 3};
    state.scores.best = 12;
    state.scores.decreases = 2;
    CheckpointKeeper(run_.string(), TrainOptions(), to_yaml(Options()), {vocabulary, vocabulary}, optimizer_).save(state, {}, true);
  }
  ~InitFrom() override { fs::remove_all(run_); }

  TrainingState state_after(const std::vector<std::string>& reset) const {
    TrainOptions options;
    options.init_from = (run_ / "last").string();
    options.reset = reset;
    return initial_point(options).state;
  }

  const fs::path run_ = fs::temp_directory_path() / ("lacuna_init_test." + std::to_string(getpid()));
  ToyModel model_;
  Optimizer optimizer_{FlatParameters(model_.parameters()), TrainOptions()};
};

TEST_F(InitFrom, KeepsEverythingWithoutReset) {
  const TrainingState state = state_after({});
  EXPECT_EQ(state.step, 40);
  EXPECT_EQ(state.optimizer_updates, 39);
  EXPECT_EQ(state.position, (DataPosition{2, 3}));
  EXPECT_EQ(state.scores.best, 12);
}

TEST_F(InitFrom, ResetsWhatItIsTold) {
  EXPECT_EQ(state_after({"optimizer"}).optimizer_updates, 0);
  EXPECT_EQ(state_after({"optimizer"}).step, 40);
  EXPECT_EQ(state_after({"lr"}).step, 0);
  EXPECT_EQ(state_after({"lr"}).scores.decreases, 0);
  EXPECT_EQ(state_after({"data"}).position, DataPosition{});
  EXPECT_EQ(state_after({"best"}).scores.best, 0);
  EXPECT_EQ(state_after({"best"}).scores.decreases, 2);
}

TEST_F(InitFrom, AnEpochOfOtherBatchesBeginsAnewAndSaysSo) {
  TrainOptions train;
  train.init_from = (run_ / "last").string();
  const auto position_in = [&](const Options& now) {
    ResumePoint point = initial_point(train);
    check_position(point, now);
    return point.state.position;
  };
  Options now;
  now.train.lr = 1;
  EXPECT_EQ(position_in(now), (DataPosition{2, 3}));
  now.train.batch_tokens.value = 100;
  testing::internal::CaptureStderr();
  EXPECT_EQ(position_in(now), (DataPosition{2, 0}));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), AllOf(HasSubstr("after batch 3 of epoch 3"), HasSubstr("train.batch_tokens: ")));
  Options other_seed, other_length;
  other_seed.seed = 5;
  other_length.data.max_length = 7;
  EXPECT_EQ(position_in(other_seed), (DataPosition{2, 0}));
  EXPECT_EQ(position_in(other_length), (DataPosition{2, 0}));
}

TEST_F(InitFrom, AnEpochOfOtherWeightsBeginsAnew) {
  Options stored;
  stored.data.train.push_back({.name = "", .src = "a", .tgt = "b"});
  const VocabularyPtr vocabulary = token_list_from_bytes("<unk>\n<s>\n</s>\nab\n", "test");
  TrainingState state;
  state.step = 50;
  state.position = {1, 4};
  CheckpointKeeper(run_.string(), TrainOptions(), to_yaml(stored), {vocabulary, vocabulary}, optimizer_).save(state, {}, true);
  stored.train.init_from = (run_ / "last").string();
  ResumePoint point = initial_point(stored.train);
  check_position(point, stored);
  EXPECT_EQ(point.state.position, (DataPosition{1, 4}));
  stored.data.train[0].weight = 2;
  check_position(point, stored);
  EXPECT_EQ(point.state.position, (DataPosition{1, 0}));
}

TEST_F(InitFrom, WeightsAloneNeedAFullReset) {
  drop_trainer_state((run_ / "last").string());
  EXPECT_THROW(state_after({"optimizer"}), CheckpointError);
  EXPECT_EQ(state_after({"optimizer", "lr", "data", "best"}).step, 0);
}

TEST_F(InitFrom, RefusesRoundedWeights) {
  CheckpointContents contents = load_checkpoint((run_ / "last").string());
  contents.info.quantised_to = "int8";
  save_checkpoint((run_ / "rounded").string(), contents);
  TrainOptions options;
  options.init_from = (run_ / "rounded").string();
  options.reset = {"optimizer", "lr", "data", "best"};
  try {
    initial_point(options);
    FAIL() << "no error";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot train on"));
    EXPECT_THAT(error.what(), HasSubstr("rounded to int8"));
  }
}

TEST_F(InitFrom, RestoresWeightsAndOptimizer) {
  TrainOptions options;
  options.init_from = (run_ / "last").string();
  model_.embedding.mutable_grad() = at::ones_like(model_.embedding);
  optimizer_.update(0.1, 1);
  const NamedTensors moved = ToyRun::copy_of(optimizer_.state());
  restore(optimizer_, initial_point(options));
  EXPECT_FALSE(same(optimizer_.state(), moved));
  EXPECT_TRUE(same(optimizer_.weights(), load_checkpoint(options.init_from).weights));
  EXPECT_EQ(optimizer_.num_updates(), 39);
}

TEST_F(InitFrom, KeepsTheMovingAverageUnlessTheOptimizerStartsAnew) {
  TrainOptions options;
  options.ema_decay = 0.9;
  const VocabularyPtr vocabulary = token_list_from_bytes("<unk>\n<s>\n</s>\nab\n", "test");
  ToyModel trained, started;
  Optimizer before(FlatParameters(trained.parameters()), options), after(FlatParameters(started.parameters()), options);
  trained.embedding.mutable_grad() = at::ones_like(trained.embedding);
  before.update(0.1, 1);
  TrainingState state;
  state.step = 50;
  CheckpointKeeper(run_.string(), options, to_yaml(Options()), {vocabulary, vocabulary}, before).save(state, {}, true);
  ASSERT_FALSE(same(before.weights(), before.ema_weights()));
  options.init_from = (run_ / "last").string();

  options.reset = {"data"};
  restore(after, initial_point(options), options.reset);
  EXPECT_TRUE(same(after.weights(), before.weights()));
  EXPECT_TRUE(same(after.ema_weights(), before.ema_weights()));

  options.reset = {"optimizer"};
  restore(after, initial_point(options), options.reset);
  EXPECT_TRUE(same(after.weights(), before.ema_weights()));
  EXPECT_TRUE(same(after.ema_weights(), before.ema_weights()));
}

TEST(RunLock, TwoTrainingsInOneFolderAreRefused) {
  const fs::path run = fs::temp_directory_path() / ("lacuna_lock_test." + std::to_string(getpid()));
  {
    const RunLock lock(run.string());
    try {
      const RunLock second(run.string());
      FAIL() << "no error";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("another process trains in it"));
    }
  }
  EXPECT_NO_THROW(RunLock(run.string()));
  fs::remove_all(run);
}

}  // namespace
}  // namespace lacuna
