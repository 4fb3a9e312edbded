#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include "../base/scratch_folder.h"
#include "ablation/run_result.h"
#include "base/error.h"
#include "checkpoint/safetensors.h"

namespace lacuna {
namespace {

using testing::HasSubstr;

TEST(RunRecord, TakesSpeedMemoryAndSparsityFromTheMetrics) {
  const ScratchFolder folder;
  folder.write("metrics.jsonl",
               R"({"step":1,"kind":"train","tokens_per_second":10,"peak_mebibytes":5}
{"step":2,"kind":"train","tokens_per_second":90,"peak_mebibytes":7}
{"step":2,"kind":7}
{"step":2,"kind":"attention","cross.0.sparsity":0.9,"cross.1.sparsity":0.9}
{"step":3,"kind":"train","tokens_per_second":30,"peak_mebibytes":6}
{"step":3,"kind":"attention","cross.0.sparsity":0.5,"cross.1.sparsity":0.25,"cross.0.entropy":3,"encoder_self.0.sparsity":0}
{"step":4,"ki)");
  RunResult result;
  read_training(folder.path(), result);
  EXPECT_EQ(result.train_speed, 30);
  EXPECT_EQ(result.peak_mebibytes, 7);
  EXPECT_EQ(result.sparsity, (std::map<std::string, double>{{"cross", .375}, {"encoder_self", 0}}));
  EXPECT_FALSE(result.updates);
}

TEST(RunRecord, IsNotMadeOfRecordsThatCannotBeRead) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.path() / "metrics.jsonl");
  RunResult result;
  EXPECT_THROW(read_training(folder.path(), result), Error);
}

TEST(RunRecord, TakesUpdatesAndEpochsFromTheNewestCheckpoint) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.path() / "last");
  folder.write("last/trainer.json", R"({"step": 120, "epoch": 3, "hours": 0.25})");
  RunResult result;
  read_training(folder.path(), result);
  EXPECT_EQ(result.updates, 120);
  EXPECT_EQ(result.epochs, 3);
  EXPECT_EQ(result.hours, .25);
  EXPECT_FALSE(result.train_speed);
}

TEST(RunRecord, CountsParameters) {
  const ScratchFolder folder;
  write_safetensors(folder.path() / "model.safetensors", {{"a", at::zeros({2, 3})}, {"b", at::zeros({4})}, {"c", at::zeros({})}});
  EXPECT_EQ(count_parameters(folder.path()), 11);
}

TEST(RunRecord, AFileThatIsNoSafetensorsIsAnError) {
  const ScratchFolder folder;
  EXPECT_THAT(message_of<DataError>([&] { count_parameters(folder.path()); }), HasSubstr("model.safetensors"));
  folder.write("model.safetensors", "abc");
  EXPECT_THAT(message_of<CheckpointError>([&] { count_parameters(folder.path()); }), HasSubstr("is not a safetensors file"));
}

TEST(RunRecord, LossIsTheMeanOverTokens) {
  EXPECT_DOUBLE_EQ(nll_per_token("-3.000000\t-1.000000 -2.000000\n0.000000\t\n-3.000000\t-3.000000\n"), 2);
  EXPECT_THROW(nll_per_token("0.000000\t\n"), MachineError);
  EXPECT_THROW(nll_per_token("no scores"), MachineError);
}

TEST(RunRecord, TheLastErrorIsWhatFollowsItsMark) {
  EXPECT_EQ(error_message("[2026] info a: error: b\nlacuna train: error: it has diverged.\nStart anew\n"), "it has diverged.\nStart anew");
  EXPECT_EQ(error_message("lacuna train: error: x: error: y\n"), "x: error: y");
  EXPECT_EQ(error_message("Killed\n"), "");
}

}  // namespace
}  // namespace lacuna
