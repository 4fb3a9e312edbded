#include "train/resume.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>

#include "../base/scratch_folder.h"
#include "base/durable_files.h"
#include "base/error.h"
#include "base/files.h"
#include "checkpoint/run_folder.h"
#include "config/load.h"
#include "config/run_files.h"
#include "toy.h"
#include "train/checkpoint_keeper.h"
#include "train/run_takeover.h"

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

TEST(ForbiddenDifferences, WhatIsReadOfTheCorpusIsLeftToItsFingerprint) {
  Options stored, now;
  stored.data.train.push_back({.src = "a", .tgt = "b"});
  now.data.train.push_back({.tsv = "c", .columns = {1, 3}, .src_prefix = "<bt>"});
  EXPECT_TRUE(forbidden_differences(stored, now).empty());
}

TEST(ReplacesRun, RefusesAnotherConfigurationUnlessItMayGo) {
  const ScratchFolder folder;
  Options options;
  options.run = folder.path().string();
  EXPECT_NO_THROW(replaces_run(options));
  folder.write("config.yaml", to_yaml(options));
  EXPECT_THAT(message_of<ConfigError>([&] { replaces_run(options); }), HasSubstr("config.yaml is of no run"));
  folder.write("train.log", "");
  EXPECT_NO_THROW(replaces_run(options));
  options.train.lr = 1;
  EXPECT_THROW(replaces_run(options), ConfigError);
  options.train.overwrite = true;
  EXPECT_NO_THROW(replaces_run(options));
}

TEST(ReplacesRun, SaysHowToTrainOnWhereTheLearningRateFallsUntilTheEnd) {
  const ScratchFolder folder;
  Options options;
  options.run = folder.path().string();
  options.train.schedule = Schedule::kCosine;
  options.train.max_steps = 5000;
  folder.write("config.yaml", to_yaml(options));
  folder.write("train.log", "");
  options.train.max_steps = 6000;
  EXPECT_THAT(message_of<ConfigError>([&] { replaces_run(options); }),
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
  const std::vector<std::pair<std::string, std::string*>> starts = {{"train.init_from", &options_.train.init_from},
                                                                    {"data.spm_model", &options_.data.spm_model},
                                                                    {"data.src_spm_model", &options_.data.src_spm_model},
                                                                    {"data.tgt_spm_model", &options_.data.tgt_spm_model},
                                                                    {"data.vocab", &options_.data.vocab},
                                                                    {"data.src_vocab", &options_.data.src_vocab},
                                                                    {"data.tgt_vocab", &options_.data.tgt_vocab}};
  for (const auto& [key, path] : starts) {
    for (const std::string& part : {folder_ / "best", folder_ / "step_20", folder_ / "spm.model", options_.run}) {
      *path = part;
      EXPECT_THAT(refusal(), HasSubstr(key + " is " + part + ", a part of the run"));
    }
    *path = folder_.write("mine", "mine");  // the user's own
    EXPECT_TRUE(replaces_run(options_)) << key;
    path->clear();
  }
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

TEST_F(OtherRun, ANoteTakesItsPlaceBeforeWhatItIsOf) {
  const RunReplacement replacement(options_);
  for (const char* const name : {"a.model", "a.model.training"}) write_file_atomically(fs::path(replacement.folder()) / name, "");
  fs::create_directory(folder_ / "a.model");  // where no file can go: it ends here, as if it were killed
  EXPECT_THROW(replacement.take_place(), MachineError);
  EXPECT_TRUE(fs::exists(folder_ / "a.model.training"));
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

TEST(FitToCorpus, AcceptsTheSameAndRefusesAnother) {
  TrainingState state;
  state.position = {2, 5};
  state.corpus_fingerprint = "old";
  fit_to_corpus(state, "old", {}, "runs/x/last");
  EXPECT_EQ(state.position, (DataPosition{2, 5}));
  EXPECT_THROW(fit_to_corpus(state, "new", {"optimizer"}, "runs/x/last"), DataError);
}

TEST(FitToCorpus, AResetStartsTheNewCorpusAtItsBeginningAndSaysSo) {
  TrainingState state;
  state.position = {2, 5};
  state.corpus_fingerprint = "old";
  testing::internal::CaptureStderr();
  fit_to_corpus(state, "new", {"data"}, "runs/x/last");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("runs/x/last was trained on up to epoch 3, batch 5"));
  EXPECT_EQ(state.position, DataPosition{});
  EXPECT_EQ(state.corpus_fingerprint, "new");
}

TEST(FitToValidationSet, ScoresOfAnotherSetCountAnewAndTheLogSaysSo) {
  TrainingState state;
  fit_to_validation_set(state, "old");
  EXPECT_EQ(state.valid_fingerprint, "old");
  const TrainOptions options = ToyRun::small_run();
  state.scores.add(1, 5, options);
  state.scores.add(2, 10, options);
  state.scores.decreases = 3;
  fit_to_validation_set(state, "old");
  EXPECT_EQ(state.scores.since_best, 1);
  testing::internal::CaptureStderr();
  fit_to_validation_set(state, "new");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("data.valid: the first set is another"));
  EXPECT_EQ(state.valid_fingerprint, "new");
  EXPECT_EQ(state.scores.validations, 0);
  EXPECT_EQ(state.scores.since_best, 0);
  EXPECT_EQ(state.scores.decreases, 3);
  state.scores.add(7, 15, options);  // worse than any of before
  EXPECT_EQ(state.scores.best_step, 15);
}

TEST(FitToValidationSet, ScoresOfASetThatIsNotKnownStay) {
  TrainingState state;
  state.scores.add(1, 5, ToyRun::small_run());
  fit_to_validation_set(state, "new");
  EXPECT_EQ(state.scores.validations, 1);
  EXPECT_EQ(state.valid_fingerprint, "new");
}

class InitFrom : public testing::Test {
 protected:
  /// All that a start without reset keeps.
  static TrainingState kept_state() {
    TrainingState state;
    state.step = 40;
    state.optimizer_updates = 39;
    state.auxiliary_updates = 38;
    state.position = {2, 3};
    state.scores = {.best = 12, .best_step = 30, .validations = 7, .since_best = 4, .since_decrease = 1, .decreases = 2};
    state.lr_factor = 0.25;
    state.corpus_fingerprint = "corpus";
    state.valid_fingerprint = "validation set";
    return state;
  }

  InitFrom() { save(Options(), state_, optimizer_); }

  void save(const Options& options, const TrainingState& state, const Optimizer& optimizer) const {
    CheckpointKeeper(run_.path().string(), options.train, to_yaml(options), toy_vocabularies(), optimizer).save(state, {}, true);
  }
  TrainingState state_after(const std::vector<std::string>& reset) const {
    TrainOptions options;
    options.init_from = run_ / "last";
    options.reset = reset;
    return initial_point(options).state;
  }

  const ScratchFolder run_;
  ToyModel model_;
  Optimizer optimizer_{FlatParameters(model_.parameters()), TrainOptions()};
  const TrainingState state_ = kept_state();
};

TEST(FindPointToGoBackTo, IsTheNewestOneBeforeTheWeightsThatDiverge) {
  const ScratchFolder run;
  const ToyModel model;
  const Optimizer optimizer(FlatParameters(model.parameters()), TrainOptions());
  EXPECT_FALSE(find_point_to_go_back_to(run.path().string(), 5));
  {
    CheckpointKeeper keeper(run.path().string(), TrainOptions(), to_yaml(Options()), toy_vocabularies(), optimizer);
    for (const int64_t step : {10, 20, 23}) {
      TrainingState state;
      state.step = state.optimizer_updates = step;
      keeper.save(state, {}, step != 23);
    }
  }
  EXPECT_EQ(find_point_to_go_back_to(run.path().string(), 24)->state.step, 20);
  EXPECT_FALSE(find_point_to_go_back_to(run.path().string(), 20)) << "the same weights, and those before are without the optimizer's state";
}

TEST_F(InitFrom, KeepsEverythingWithoutReset) {
  EXPECT_EQ(state_after({}), state_);
}

TEST_F(InitFrom, ResetsWhatItIsTold) {
  TrainingState expected = state_;
  expected.optimizer_updates = expected.auxiliary_updates = 0;
  EXPECT_EQ(state_after({"optimizer"}), expected);
  expected = state_;
  expected.step = expected.scores.decreases = 0;
  expected.lr_factor = 1;
  EXPECT_EQ(state_after({"lr"}), expected);
  expected = state_;
  expected.position = {};
  expected.corpus_fingerprint.clear();
  EXPECT_EQ(state_after({"data"}), expected);
  expected = state_;
  expected.scores = {.decreases = 2};
  expected.valid_fingerprint.clear();
  EXPECT_EQ(state_after({"best"}), expected);
}

TEST_F(InitFrom, AnEpochOfOtherBatchesBeginsAnewAndSaysSo) {
  TrainOptions train;
  train.init_from = run_ / "last";
  const auto position_in = [&](const Options& now) {
    ResumePoint point = initial_point(train);
    fit_to_batches(point, now);
    return point.state.position;
  };
  Options now;
  now.train.lr = 1;
  EXPECT_EQ(position_in(now), (DataPosition{2, 3}));
  now.train.batch_tokens.value = 100;
  testing::internal::CaptureStderr();
  EXPECT_EQ(position_in(now), (DataPosition{2, 0}));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), AllOf(HasSubstr("after batch 3 of epoch 3"), HasSubstr("train.batch_tokens: ")));
  Options other_seed, other_length, crops;
  other_seed.seed = 5;
  other_length.data.max_length = 7;
  crops.data.long_lines = LongLines::kCrop;
  for (const Options& other : {other_seed, other_length, crops}) EXPECT_EQ(position_in(other), (DataPosition{2, 0}));
}

TEST_F(InitFrom, AnEpochOfOtherWeightsBeginsAnew) {
  Options stored;
  stored.data.train.push_back({.name = "", .src = "a", .tgt = "b"});
  TrainingState state;
  state.step = 50;
  state.position = {1, 4};
  save(stored, state, optimizer_);
  stored.train.init_from = run_ / "last";
  ResumePoint point = initial_point(stored.train);
  fit_to_batches(point, stored);
  EXPECT_EQ(point.state.position, (DataPosition{1, 4}));
  stored.data.train[0].weight = 2;
  fit_to_batches(point, stored);
  EXPECT_EQ(point.state.position, (DataPosition{1, 0}));
}

TEST_F(InitFrom, ValidationsThatTranslateOtherwiseAreNamed) {
  TrainOptions train;
  train.init_from = run_ / "last";
  const ResumePoint point = initial_point(train);
  Options now;
  now.translate.beam_size = 9;  // of test sets
  now.translate.n_best = 2;
  now.translate.batch_tokens = 100;
  EXPECT_EQ(note_of_other_search(point, now), "");
  now.train.valid_beam_size = 1;
  now.translate.length_penalty = 0.6;
  EXPECT_THAT(note_of_other_search(point, now),
              AllOf(HasSubstr("otherwise than it did up to " + (run_ / "last")), HasSubstr("train.valid_beam_size: 5 and 1"),
                    HasSubstr("translate.length_penalty: 1 and 0.6")));
  now.train.metric = ValidMetric::kLoss;
  EXPECT_EQ(note_of_other_search(point, now), "");
}

TEST_F(InitFrom, AModelThatComputesOtherwiseWithTheSameWeightsIsNamed) {
  TrainOptions train;
  train.init_from = run_ / "last";
  const ResumePoint point = initial_point(train);
  ModelOptions now = point.options.model;
  now.dropout = 0.3;
  EXPECT_EQ(note_of_other_model(point, now), "");
  now.activation = Activation::kSwish;
  now.norm_epsilon = 1e-6;
  EXPECT_THAT(note_of_other_model(point, now), AllOf(HasSubstr("that of " + (run_ / "last")), HasSubstr("model.activation: relu and swish"),
                                                     HasSubstr("model.norm_epsilon: 0 and ")));
}

TEST_F(InitFrom, WeightsAloneNeedAFullReset) {
  drop_trainer_state(run_ / "last");
  EXPECT_THROW(state_after({"optimizer"}), CheckpointError);
  EXPECT_EQ(state_after({"optimizer", "lr", "data", "best"}).step, 0);
}

TEST_F(InitFrom, RefusesRoundedWeights) {
  CheckpointContents contents = load_checkpoint(run_ / "last");
  contents.info.quantized_to = "int8";
  save_checkpoint(run_ / "rounded", contents);
  TrainOptions options;
  options.init_from = run_ / "rounded";
  options.reset = {"optimizer", "lr", "data", "best"};
  EXPECT_THAT(message_of<CheckpointError>([&] { initial_point(options); }),
              AllOf(HasSubstr("cannot train on"), HasSubstr("rounded to int8")));
}

TEST_F(InitFrom, RestoresWeightsAndOptimizer) {
  TrainOptions options;
  options.init_from = run_ / "last";
  model_.embedding.mutable_grad() = at::ones_like(model_.embedding);
  optimizer_.update(0.1, 1);
  const NamedTensors moved = ToyRun::copy_of(optimizer_.state());
  restore(optimizer_, initial_point(options));
  EXPECT_FALSE(same(optimizer_.state(), moved));
  EXPECT_TRUE(same(optimizer_.weights(), load_checkpoint(options.init_from).weights));
  EXPECT_EQ(optimizer_.num_updates(), 39);
  EXPECT_EQ(optimizer_.num_auxiliary_updates(), 38);
}

TEST_F(InitFrom, KeepsTheMovingAverageUnlessTheOptimizerStartsAnew) {
  TrainOptions options;
  options.ema_decay = 0.9;
  ToyModel trained, started;
  Optimizer before(FlatParameters(trained.parameters()), options), after(FlatParameters(started.parameters()), options);
  trained.embedding.mutable_grad() = at::ones_like(trained.embedding);
  before.update(0.1, 1);
  TrainingState state;
  state.step = 50;
  save(Options(), state, before);
  ASSERT_FALSE(same(before.weights(), before.ema_weights()));
  options.init_from = run_ / "last";

  options.reset = {"data"};
  restore(after, initial_point(options), options.reset);
  EXPECT_TRUE(same(after.weights(), before.weights()));
  EXPECT_TRUE(same(after.ema_weights(), before.ema_weights()));

  options.reset = {"optimizer"};
  restore(after, initial_point(options), options.reset);
  EXPECT_TRUE(same(after.weights(), before.ema_weights()));
  EXPECT_TRUE(same(after.ema_weights(), before.ema_weights()));
}

TEST_F(InitFrom, ADamagedCheckpointIsPassedOverForTheNewestWholeOne) {
  const std::string run = run_.path().string();
  fs::copy(run_ / "step_40", run_ / "step_50");  // with its trainer state, as where a loss of power came before it was dropped
  fs::resize_file(run_ / "step_50/model.safetensors", 10);
  fs::create_directory(run_ / "step_60");
  fs::create_directory(run_ / "step_70");
  run_.write("step_70/config.yaml", "");
  testing::internal::CaptureStderr();
  const std::optional<ResumePoint> point = find_resume_point(run);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("step_60 is an empty folder, and no checkpoint: it is left as it is"),
                    HasSubstr("step_70 is damaged: it has no manifest.json. Training goes on from " + run_ / "step_40")));
  ASSERT_TRUE(point);
  EXPECT_EQ(point->state, state_);
  EXPECT_EQ(point->damaged, (std::vector<std::string>{run_ / "step_70", run_ / "step_50"}));
  EXPECT_EQ(set_aside(run_ / "step_50"), run_ / "step_50.damaged");
  fs::create_directory(run_ / "step_50");
  run_.write("step_50/a", "");
  EXPECT_EQ(set_aside(run_ / "step_50"), run_ / "step_50.damaged_2");
  set_aside(run_ / "step_70");
  EXPECT_EQ(newest_checkpoint_of(run), run_ / "step_40");
}

TEST_F(InitFrom, ADamagedCheckpointIsAnErrorWhereNoOtherHoldsWhatTrainingNeeds) {
  const std::string run = run_.path().string();
  fs::resize_file(run_ / "step_40/model.safetensors", 10);
  EXPECT_THAT(message_of<DamagedCheckpointError>([&] { find_resume_point(run); }),
              AllOf(HasSubstr("step_40/model.safetensors is damaged"), HasSubstr("or remove its folder: the run then begins anew")));
}

TEST_F(InitFrom, UpdatesOfMoreBatchesThanRanksMakeAreRefused) {
  Options options;
  options.train.update_freq = 3;
  TrainingState state = state_;
  const auto resume_with = [&](int64_t batches) {
    state.batches_per_update = batches;
    ++state.step;
    save(options, state, optimizer_);
    find_resume_point(run_.path().string());
  };
  for (const int64_t batches : {int64_t{0}, int64_t{6}, 3 * int64_t{4096}}) EXPECT_NO_THROW(resume_with(batches)) << batches;
  for (const int64_t batches : {int64_t{8}, 3 * int64_t{4097}, int64_t{1} << 31})
    EXPECT_THAT(message_of<CheckpointError>([&] { resume_with(batches); }),
                AllOf(HasSubstr("/trainer.json: batches_per_update is " + std::to_string(batches)),
                      HasSubstr("expected train.update_freq of the run, 3, times its number of ranks, 4096 at most")));
}

TEST(RunLock, SaysThatItsFolderIsGone) {
  const ScratchFolder folder;
  const RunLock lock(folder / "run");
  lock.require_in_place();
  fs::rename(folder / "run", folder / "moved");
  const RunLock other(folder / "run");
  EXPECT_THAT(message_of<MachineError>([&] { lock.require_in_place(); }),
              AllOf(HasSubstr(folder / "run is not the folder any more"), HasSubstr("was removed, renamed or replaced")));
}

TEST(RunLock, KnowsThatAnotherStartWorksInItsFolder) {
  const ScratchFolder folder;
  const RunLock lock(folder / "run");
  const std::function<bool()> is_alone = lock.is_alone_there();
  EXPECT_TRUE(is_alone());
  folder.write(std::string("run/") + run_files::kLock, "another start\n");
  EXPECT_FALSE(is_alone());
  EXPECT_THAT(message_of<MachineError>([&] { lock.require_in_place(); }), HasSubstr("another start of this run works there"));
  fs::remove_all(folder / "run");
  EXPECT_TRUE(is_alone());
}

TEST(RunLock, TwoTrainingsInOneFolderAreRefused) {
  const ScratchFolder folder;
  const std::string run = folder / "run";
  {
    const RunLock lock(run);
    EXPECT_THAT(message_of<ConfigError>([&] { const RunLock second(run); }), HasSubstr("is in use: another process trains in it"));
  }
  EXPECT_NO_THROW(const RunLock third(run));
}

TEST(RunLock, PipesInAFolderAreRefused) {
  const ScratchFolder folder;
  const std::string run = folder / "run", log = run + "/" + run_files::kLog;
  fs::create_directories(run);
  ASSERT_EQ(mkfifo(log.c_str(), 0600), 0);
  EXPECT_THAT(message_of<DataError>([&] { const RunLock lock(run); }), HasSubstr(log + ": is a pipe"));
}

}  // namespace
}  // namespace lacuna
