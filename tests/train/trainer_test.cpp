#include "train/trainer.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <new>
#include <thread>

#include "../base/scratch_folder.h"
#include "base/error.h"
#include "toy.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TrainOptions small_run() {
  return ToyRun::small_run();
}

void expect_same_lines(const std::vector<TrainingProgress>& a, const std::vector<TrainingProgress>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].step, b[i].step);
    EXPECT_EQ(a[i].epoch, b[i].epoch);
    EXPECT_EQ(a[i].loss_per_token, b[i].loss_per_token);
    EXPECT_EQ(a[i].nll_per_token, b[i].nll_per_token);
    EXPECT_EQ(a[i].accuracy, b[i].accuracy);
    EXPECT_EQ(a[i].tokens_per_update, b[i].tokens_per_update);
    EXPECT_EQ(a[i].gradient_norm, b[i].gradient_norm);
    EXPECT_EQ(a[i].lr, b[i].lr);
  }
}

TEST(Trainer, LowersTheLoss) {
  TrainOptions options = small_run();
  options.max_steps = 200;
  options.warmup_steps = 50;
  ToyRun run(options);
  EXPECT_EQ(run.trainer.run(), TrainingEnd::kMaxSteps);
  EXPECT_LT(run.lines.back().loss_per_token, 0.8 * run.lines.front().loss_per_token);
}

TEST(Trainer, UpdateByUpdateDoesWhatARunDoesButForItsHooks) {
  TrainOptions options = small_run();
  options.max_steps = 7;
  ToyRun whole(options), single(options);
  whole.trainer.run();
  for (int64_t step = 1; step <= 7; ++step) EXPECT_EQ(single.trainer.update(), step == 7);  // the toy's epoch
  EXPECT_TRUE(single.validated.empty() && single.saved.empty() && single.lines.empty());
  EXPECT_EQ(single.trainer.state().step, 7);
  EXPECT_TRUE(single.model.embedding.equal(whole.model.embedding));
}

TEST(Trainer, ValidatesAndSavesOnScheduleAndAtTheEnd) {
  ToyRun run(small_run());
  run.trainer.run();
  EXPECT_THAT(run.validated, ElementsAre(5, 10, 15, 20, 23));
  std::vector<int64_t> saved;
  for (const ToyRun::Saved& one : run.saved) saved.push_back(one.state.step);
  EXPECT_THAT(saved, ElementsAre(5, 10, 15, 20, 23));
}

TEST(Trainer, ValidatesTheMovingAverageAndGoesOnWithTheWeights) {
  TrainOptions options = small_run();
  options.ema_decay = 0.9;
  ToyRun run(options);
  std::vector<NamedTensors> seen;
  run.score = [&seen](const ToyRun& of) {
    const auto parameters = of.model.parameters();
    seen.push_back(ToyRun::copy_of({parameters.begin(), parameters.end()}));
    return 1.0;
  };
  run.trainer.run();
  ASSERT_EQ(seen.size(), run.saved.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_TRUE(same(seen[i], run.saved[i].ema)) << i;
    EXPECT_FALSE(same(seen[i], run.saved[i].weights)) << i;
  }
}

TEST(Trainer, ValidatesAtTheEndOfEachEpochIfSoAsked) {
  TrainOptions options = small_run();
  options.valid_every = options.save_every = options.max_steps = 0;
  options.max_epochs = 2;
  ToyRun run(options);
  EXPECT_EQ(run.trainer.run(), TrainingEnd::kMaxEpochs);
  EXPECT_THAT(run.validated, ElementsAre(7, 14));
}

TEST(Trainer, SeesAnEpochsEndWithinAnUpdateOfSeveralBatches) {
  TrainOptions options = small_run();
  options.valid_every = options.save_every = options.max_steps = 0;
  options.update_freq = 2;
  options.max_epochs = 2;
  ToyRun run(options);
  run.trainer.run();
  EXPECT_THAT(run.validated, ElementsAre(4, 7));  // batches 8 and 14
}

/// The rest is the same in every run.
TrainingState without_hours(TrainingState state) {
  state.hours = 0;
  return state;
}

TEST(Trainer, GoesOnBitForBitAfterAnInterruptionAtAnyStep) {
  TrainOptions options = small_run();
  options.ema_decay = 0.9;
  options.schedule = Schedule::kPlateau;
  options.plateau_patience = 2;
  options.patience = 3;
  options.update_freq = 2;
  const auto score = [](const ToyRun& run) { return run.trainer.state().step == 5 ? -2.0 : -1.0; };
  ToyRun whole(options);
  whole.score = score;
  EXPECT_EQ(whole.trainer.run(), TrainingEnd::kNoImprovement);
  EXPECT_GT(whole.trainer.state().scores.decreases, 0);
  for (int64_t stop = 1; stop < whole.trainer.state().step; ++stop) {
    SCOPED_TRACE("stopped after step " + std::to_string(stop));
    ToyRun first(options);
    first.score = score;
    first.interrupts = [stop](const ToyRun& run) { return run.trainer.state().step >= stop; };
    EXPECT_EQ(first.trainer.run(), TrainingEnd::kInterrupted);
    ToyRun second(options, first.saved.back());
    second.score = score;
    EXPECT_EQ(second.trainer.run(), TrainingEnd::kNoImprovement);
    EXPECT_EQ(without_hours(second.trainer.state()), without_hours(whole.trainer.state()));
    EXPECT_TRUE(same(second.optimizer.weights(), whole.optimizer.weights()));
    EXPECT_TRUE(same(second.optimizer.ema_weights(), whole.optimizer.ema_weights()));
    std::vector<TrainingProgress> lines = first.lines;
    lines.insert(lines.end(), second.lines.begin(), second.lines.end());
    expect_same_lines(lines, whole.lines);
  }
}

TEST(Trainer, AnInterruptionBeforeAValidationLeavesItDue) {
  ToyRun first(small_run());
  first.interrupts = [](const ToyRun& run) { return run.trainer.state().step >= 10; };
  first.trainer.run();
  EXPECT_THAT(first.validated, ElementsAre(5));
  EXPECT_FALSE(first.saved.back().is_scheduled);
  ToyRun second(small_run(), first.saved.back());
  second.trainer.run();
  EXPECT_THAT(second.validated, ElementsAre(10, 15, 20, 23));
  EXPECT_EQ(second.saved.front().state.step, 10);
  EXPECT_TRUE(second.saved.front().is_scheduled);
}

TEST(Trainer, AValidationThatIsDueIsLeftOutWhereNothingIsLeftToValidateOn) {
  ToyRun first(small_run());
  first.interrupts = [](const ToyRun& run) { return run.trainer.state().step >= 10; };
  first.trainer.run();
  ASSERT_TRUE(first.saved.back().state.validation_is_due);
  ToyRun second(small_run(), first.saved.back());
  std::vector<int64_t> saved;
  TrainerHooks hooks;
  hooks.log = [](const TrainingProgress&) {};
  hooks.save = [&](const TrainingState& state, const Scores&, bool) { saved.push_back(state.step); };
  const LossFunction loss = [&](const Batch& batch, const ForwardContext& context) { return second.model.loss(batch, context); };
  Trainer trainer(small_run(), 1, loss, second.stream, second.optimizer, LearningRate(small_run(), 4), hooks, first.saved.back().state);
  EXPECT_EQ(trainer.run(), TrainingEnd::kMaxSteps);
  EXPECT_THAT(saved, ElementsAre(10, 15, 20, 23));
}

TEST(Trainer, AValidationThatFailsLosesNoUpdates) {
  TrainOptions options = small_run();
  options.ema_decay = 0.9;
  ToyRun whole(options), first(options);
  whole.trainer.run();
  first.score = [](const ToyRun&) -> double { throw MachineError("no room in TMPDIR"); };
  EXPECT_EQ(message_of<MachineError>([&] { first.trainer.run(); }), "no room in TMPDIR");
  ASSERT_EQ(first.saved.size(), 1u);
  EXPECT_EQ(first.saved.back().state.step, 5);
  EXPECT_TRUE(first.saved.back().state.validation_is_due);
  EXPECT_FALSE(first.saved.back().is_scheduled);
  ToyRun second(options, first.saved.back());
  second.trainer.run();
  EXPECT_THAT(second.validated, ElementsAre(5, 10, 15, 20, 23));
  EXPECT_TRUE(same(second.optimizer.weights(), whole.optimizer.weights()));
  EXPECT_TRUE(same(second.optimizer.ema_weights(), whole.optimizer.ema_weights()));
}

TEST(Trainer, AValidationThatFailsIsReportedEvenIfSavingFailsToo) {
  ToyRun run(small_run());
  run.score = [](const ToyRun&) -> double { throw MachineError("no room in TMPDIR"); };
  run.on_save = [] { throw MachineError("nor in the run folder"); };
  EXPECT_EQ(message_of<MachineError>([&] { run.trainer.run(); }), "no room in TMPDIR");
  EXPECT_THAT(run.warnings, ElementsAre(HasSubstr("nor in the run folder")));
}

TEST(Trainer, AFinishedRunHasNothingToDo) {
  ToyRun run(small_run());
  run.trainer.run();
  ToyRun again(small_run(), run.saved.back());
  EXPECT_EQ(again.trainer.end(), TrainingEnd::kMaxSteps);
  TrainOptions longer = small_run();
  longer.max_steps = 30;
  EXPECT_FALSE(ToyRun(longer, run.saved.back()).trainer.end());
}

TEST(Trainer, ManyBatchesAnUpdateAreOneLargeBatch) {
  TrainOptions options = small_run();
  options.max_steps = 1;
  options.update_freq = 2;
  ToyRun run(options, {}, &ToyModel::loss, at::kDouble);
  run.trainer.run();

  const ToyModel model(at::kDouble);
  Optimizer optimizer(FlatParameters(model.parameters()), options);
  const ForwardContext context{.training = true, .seed = 1, .step = 1};
  const BatchPtr first = toy_batch(0, 0), second = toy_batch(0, 1);
  (model.loss(*first, context).loss + model.loss(*second, context).loss).backward();
  optimizer.update(LearningRate(options, 4).at(1), 1.0 / static_cast<double>(first->tgt_tokens() + second->tgt_tokens()));
  EXPECT_TRUE(at::allclose(run.model.embedding, model.embedding, 0, 1e-15));
}

/// A run for which more than 8 target tokens are too many, at which `run_out` throws, against one without bounds.
void expect_split_and_done_again(const std::function<void()>& run_out) {
  TrainOptions options = small_run();
  options.update_freq = 2;
  ToyRun whole(options, {}, &ToyModel::loss, at::kDouble);
  whole.trainer.run();
  ToyRun split(
      options, {},
      [&run_out](const ToyModel& model, const Batch& batch, const ForwardContext& context) {
        if (batch.tgt_tokens() > 8) run_out();
        return model.loss(batch, context);
      },
      at::kDouble);
  split.trainer.run();
  ASSERT_FALSE(split.warnings.empty());
  EXPECT_THAT(split.warnings.front(), HasSubstr("is split in two"));
  EXPECT_TRUE(at::allclose(split.model.embedding, whole.model.embedding, 0, 1e-12));
}

TEST(Trainer, ABatchThatDoesNotFitTheMemoryIsSplitAndDoneAgain) {
  expect_split_and_done_again([] { throw std::bad_alloc(); });
}

TEST(Trainer, ABatchThatDoesNotFitAGpuIsSplitAndDoneAgain) {
  expect_split_and_done_again([] { TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory"); });
  expect_split_and_done_again([] { TORCH_CHECK(false, "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"); });
}

TEST(Trainer, ABatchThatDoesNotFitTheMemoryAsLibTorchSaysItIsSplitAndDoneAgain) {
  expect_split_and_done_again([] { at::empty({int64_t{1} << 46}); });
}

TEST(Trainer, ReportsThePenaltyApartFromTheCrossEntropy) {
  TrainOptions options = small_run();
  options.update_freq = 2;
  ToyRun run(
      options, {},
      [](const ToyModel& model, const Batch& batch, const ForwardContext& context) {
        LossSums sums = model.loss(batch, context);
        sums.penalty = at::scalar_tensor(0.25 * static_cast<double>(batch.tgt_tokens()), at::kDouble);
        sums.loss = sums.loss + sums.penalty;
        return sums;
      },
      at::kDouble);
  run.trainer.run();
  ASSERT_FALSE(run.lines.empty());
  for (const TrainingProgress& line : run.lines) {
    EXPECT_NEAR(line.penalty_per_token, 0.25, 1e-12);
    EXPECT_NEAR(line.loss_per_token - line.nll_per_token, 0.25, 1e-12);
  }
}

TEST(Trainer, ALineIsOfAllUpdatesSinceTheOneBefore) {
  TrainOptions options = small_run();
  options.max_steps = 8;
  options.lr = 1e-30;  // the model stays what it was
  ToyRun run(options);
  run.trainer.run();
  ASSERT_EQ(run.lines.size(), 2u);
  ToyStream stream;
  for (const TrainingProgress& line : run.lines) {
    int64_t tokens = 0, correct = 0;
    for (int64_t step = line.step - 3; step <= line.step; ++step) {
      const LossSums sums = ToyModel().loss(*stream.next(), {.training = true, .seed = 1, .step = step});
      tokens += sums.tokens;
      correct += sums.correct.item<int64_t>();
    }
    EXPECT_EQ(line.tokens_per_update, static_cast<double>(tokens) / 4);
    EXPECT_EQ(line.accuracy, static_cast<double>(correct) / static_cast<double>(tokens));
    EXPECT_GT(line.accuracy, 0);
  }
}

TEST(Trainer, TheLastUpdateHasALine) {
  TrainOptions options = small_run();
  options.max_steps = 6;
  for (const int64_t every : {4, 6, 100}) {
    options.log_every = every;
    ToyRun run(options);
    run.trainer.run();
    ASSERT_EQ(run.lines.size(), every == 4 ? 2u : 1u) << every;
    EXPECT_EQ(run.lines.back().step, 6) << every;
  }
}

TEST(Trainer, ALineIsOfTheEpochOfItsLastUpdate) {
  TrainOptions options = small_run();
  options.max_steps = 8;
  options.log_every = 1;
  ToyRun run(options);
  run.trainer.run();
  std::vector<int64_t> epochs;
  for (const TrainingProgress& line : run.lines) epochs.push_back(line.epoch);
  EXPECT_THAT(epochs, ElementsAre(1, 1, 1, 1, 1, 1, 1, 2));
}

TEST(Trainer, ASentenceThatDoesNotFitTheMemoryEndsTheRun) {
  ToyRun run(small_run(), {}, [](const ToyModel&, const Batch&, const ForwardContext&) -> LossSums { throw std::bad_alloc(); });
  EXPECT_THAT(message_of<MachineError>([&] { run.trainer.run(); }), HasSubstr("out of memory at step 1 with a single sentence"));
}

/// The toy's loss, not a number in the updates for which `is_broken` holds.
ToyRun::Loss broken_when(std::function<bool(int64_t)> is_broken) {
  return [is_broken = std::move(is_broken)](const ToyModel& model, const Batch& batch, const ForwardContext& context) {
    LossSums sums = model.loss(batch, context);
    if (is_broken(context.step)) sums.loss = sums.loss * NAN;
    return sums;
  };
}

TEST(Trainer, AnUpdateThatIsNotFiniteIsLeftOutAndCounted) {
  ToyRun run(small_run(), {}, broken_when([](int64_t step) { return step == 3; }));
  run.trainer.run();
  EXPECT_EQ(run.trainer.state().skipped_updates, 1);
  EXPECT_EQ(run.optimizer.num_updates(), 22);
  EXPECT_TRUE(std::isfinite(run.lines.front().loss_per_token));
  EXPECT_THAT(run.warnings, ElementsAre(HasSubstr("the gradient of step 3 is not finite")));
}

TEST(Trainer, NoLineIsLoggedOfNothingButUpdatesThatAreLeftOut) {
  ToyRun run(small_run(), {}, broken_when([](int64_t step) { return step > 4 && step <= 8; }));
  run.trainer.run();
  std::vector<int64_t> steps;
  for (const TrainingProgress& line : run.lines) {
    steps.push_back(line.step);
    EXPECT_TRUE(std::isfinite(line.loss_per_token) && std::isfinite(line.gradient_norm)) << line.step;
  }
  EXPECT_THAT(steps, ElementsAre(4, 12, 16, 20, 23));  // 23 is the last
  EXPECT_EQ(run.warnings.size(), 4u);
}

TEST(Trainer, ManyUpdatesInARowThatAreNotFiniteEndTheRun) {
  TrainOptions options = small_run();
  options.max_steps = 100;
  ToyRun run(options, {}, broken_when([](int64_t step) { return step > 2; }));
  EXPECT_THAT(message_of<MachineError>([&] { run.trainer.run(); }),
              AllOf(HasSubstr("training has diverged"), HasSubstr("up to step 22. Lower train.lr")));
}

TEST(Trainer, HowManyInARowIsAnOption) {
  TrainOptions options = small_run();
  options.max_bad_updates = 3;
  ToyRun run(options, {}, broken_when([](int64_t step) { return step > 2; }));
  EXPECT_THAT(message_of<DivergedError>([&] { run.trainer.run(); }), HasSubstr("in the last 3 updates, up to step 5. Lower"));
  EXPECT_EQ(run.trainer.last_batches().size(), 1u);
  EXPECT_EQ(run.trainer.last_batches().front()->src, toy_batch(0, 4)->src);
}

TEST(Trainer, AnInfiniteLossWithFiniteGradientsIsLeftOutToo) {
  ToyRun run(small_run(), {}, [](const ToyModel& model, const Batch& batch, const ForwardContext& context) {
    LossSums sums = model.loss(batch, context);
    if (context.step == 3) sums.loss = sums.loss + INFINITY;
    return sums;
  });
  run.trainer.run();
  EXPECT_EQ(run.optimizer.num_updates(), 22);
  EXPECT_THAT(run.warnings, ElementsAre(HasSubstr("the loss of step 3 is not finite")));
}

TEST(Trainer, ARunThatHasGoneBackTrainsWithItsFactorOfTheLearningRate) {
  ToyRun whole(small_run());
  ToyRun::Saved start;
  start.weights = ToyRun::copy_of(whole.optimizer.weights());
  start.optimizer = ToyRun::copy_of(whole.optimizer.state());
  start.state.lr_factor = 0.5;
  ToyRun run(small_run(), start);
  whole.trainer.run();
  run.trainer.run();
  ASSERT_FALSE(run.lines.empty());
  for (size_t i = 0; i < run.lines.size(); ++i) EXPECT_EQ(run.lines[i].lr, 0.5 * whole.lines[i].lr);
  EXPECT_FALSE(same(run.optimizer.weights(), whole.optimizer.weights()));
  EXPECT_EQ(run.saved.back().state.lr_factor, 0.5);
}

TEST(Trainer, AValidationThatFindsThatItHasDivergedSavesNothing) {
  TrainOptions options = small_run();
  options.save_every = 100;
  ToyRun run(options);
  run.score = [](const ToyRun&) -> double { throw DivergedError("training has diverged"); };
  EXPECT_THROW(run.trainer.run(), DivergedError);
  EXPECT_TRUE(run.saved.empty());
}

TEST(Trainer, UpdatesInARowAreCountedAnewAfterAFiniteOne) {
  TrainOptions options = small_run();
  options.max_steps = 60;
  ToyRun run(options, {}, broken_when([](int64_t step) { return step % 2 == 0; }));
  EXPECT_NO_THROW(run.trainer.run());
  EXPECT_EQ(run.trainer.state().skipped_updates, 30);
}

TEST(Trainer, StopsEarlyWhenPatienceIsAtItsEnd) {
  TrainOptions options = small_run();
  options.patience = 2;
  ToyRun run(options);
  run.score = [](const ToyRun& of) { return of.trainer.state().step == 5 ? 1.0 : 2.0; };
  EXPECT_EQ(run.trainer.run(), TrainingEnd::kNoImprovement);
  EXPECT_EQ(run.trainer.state().step, 15);
  EXPECT_EQ(run.trainer.state().scores.best_step, 5);
}

TEST(Trainer, ARunThatStopsEarlyBetweenScheduledSavesKeepsItsLastCheckpointAsOne) {
  TrainOptions options = small_run();
  options.save_every = 10;
  options.patience = 2;
  ToyRun run(options);
  run.score = [](const ToyRun& of) { return of.trainer.state().step == 5 ? 1.0 : 2.0; };
  run.trainer.run();
  EXPECT_EQ(run.saved.back().state.step, 15);
  EXPECT_TRUE(run.saved.back().is_scheduled);
}

TEST(Trainer, DoesNotStopEarlyBeforeMinSteps) {
  TrainOptions options = small_run();
  options.patience = 1;
  options.min_steps = 18;
  ToyRun run(options);
  run.score = [](const ToyRun&) { return 1.0; };
  run.trainer.run();
  EXPECT_EQ(run.trainer.state().step, 18);
}

TEST(Trainer, AnImprovementBelowTheLeastDoesNotCount) {
  TrainOptions options = small_run();
  options.patience = 1;
  options.min_improvement = 0.1;
  ToyRun run(options);
  run.score = [](const ToyRun& of) { return 1 - 0.01 * static_cast<double>(of.trainer.state().step); };
  run.trainer.run();
  EXPECT_EQ(run.trainer.state().step, 10);
}

/// A run that was interrupted after step 3, as if it had taken that long.
ToyRun::Saved interrupted_after(double hours) {
  ToyRun run(small_run());
  run.interrupts = [](const ToyRun& of) { return of.trainer.state().step >= 3; };
  run.trainer.run();
  ToyRun::Saved saved = run.saved.back();
  saved.state.hours = hours;
  return saved;
}

TEST(Trainer, MaxHoursAreThoseOfAllStarts) {
  TrainOptions options = small_run();
  options.max_hours = 2;
  EXPECT_EQ(ToyRun(options, interrupted_after(2.5)).trainer.end(), TrainingEnd::kMaxHours);
  ToyRun run(options, interrupted_after(2 - 1e-10));  // no update is so short
  EXPECT_EQ(run.trainer.run(), TrainingEnd::kMaxHours);
  EXPECT_EQ(run.trainer.state().step, 4);
}

TEST(Trainer, ACheckpointHoldsTheHoursOfAllStarts) {
  ToyRun run(small_run(), interrupted_after(1.5));
  run.trainer.run();
  EXPECT_GE(run.saved.back().state.hours, 1.5);
}

TEST(Trainer, ValidatesAtTheEndOfMaxHoursWheneverTheTimeIsUp) {
  TrainOptions options = small_run();
  options.max_steps = 0;
  options.max_hours = 0.05 / 3600;
  ToyRun run(options);
  run.on_log = [] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); };  // after step 4, when nothing was due
  EXPECT_EQ(run.trainer.run(), TrainingEnd::kMaxHours);
  EXPECT_EQ(run.validated.back(), run.trainer.state().step);
  EXPECT_EQ(run.saved.back().state.step, run.trainer.state().step);
}

}  // namespace
}  // namespace lacuna
