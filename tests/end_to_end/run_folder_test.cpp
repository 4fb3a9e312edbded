#include <spdlog/fmt/fmt.h>

#include <fstream>
#include <set>

#include "program.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RunFolderOfTraining : public DigitsTest {
 protected:
  RunFolderOfTraining() {
    write_corpus("train", 1000, 1, same);
    write_corpus("valid", 50, 2, same);
    EXPECT_EQ(exit_code(train("run", {"--train.max_steps", "20"})), 0) << log();
  }
};

TEST_F(RunFolderOfTraining, HoldsWhatItShould) {
  for (const char* const name : {"config.yaml", "train.log", "metrics.jsonl", "tensorboard", "step_20/model.safetensors",
                                 "best/manifest.json", "last/trainer.json", "step_10/checkpoint.json"})
    EXPECT_TRUE(fs::exists(path("run") / name)) << name;
  EXPECT_THAT(bytes_of(path("run") / "train.log"),
              AllOf(HasSubstr("step 20"), HasSubstr("effective batch: 256 tokens"), HasSubstr("parameters")));
}

TEST_F(RunFolderOfTraining, RecordsSparsityAndEntropyOfAttention) {
  const nlohmann::json record = last_record("run", "attention");
  for (const char* const name : {"encoder_self.0.sparsity", "decoder_self.0.entropy", "cross.0.entropy"})
    EXPECT_TRUE(record.contains(name)) << name;
  EXPECT_EQ(record["cross.0.sparsity"], 0);
  EXPECT_EQ(record["cross.0.null_rate"], 0);
  EXPECT_GT(record["cross.0.entropy"], 0);
}

TEST_F(RunFolderOfTraining, RecordsNullRates) {
  EXPECT_EQ(exit_code(train("rela", {"--train.max_steps", "20", "--model.attention", "rela"})), 0) << log();
  const nlohmann::json record = last_record("rela", "attention");
  const double rate = record["encoder_self.0.null_rate"];
  EXPECT_GE(rate, 0);
  EXPECT_LT(rate, record["encoder_self.0.sparsity"].get<double>());  // a null row is all zeros, and others have some
}

TEST_F(RunFolderOfTraining, RecordsTheAccuracyOfValidation) {
  const nlohmann::json record = last_record("run", "valid");
  EXPECT_GT(record["accuracy"], 0);
  EXPECT_LT(record["accuracy"], 1);
  EXPECT_THAT(bytes_of(path("run") / "train.log"), HasSubstr("accuracy " + fmt::format("{:.3f}", record["accuracy"].get<double>()) + "\n"));
}

TEST_F(RunFolderOfTraining, RecordsLearnedAlphas) {
  EXPECT_EQ(exit_code(train("learned", {"--train.max_steps", "20", "--model.attention", "{type: entmax, alpha: learned}"})), 0) << log();
  const nlohmann::json record = last_record("learned", "attention");
  ASSERT_TRUE(record.contains("cross.0.alpha.0"));
  EXPECT_NE(record["cross.0.alpha.0"], 1.5);
  EXPECT_NEAR(record["cross.0.alpha.0"], 1.5, 0.1);
  EXPECT_THAT(bytes_of(path("learned") / "train.log"), HasSubstr("cross.0.alpha by head 1."));
}

TEST_F(RunFolderOfTraining, RecordsLearnedSpansAndTheirPenalty) {
  const std::string attention =
      "{encoder_self: {type: span, max_span: 8, span_init: 2}, decoder_self: {type: span, span: dynamic, max_span: 8, span_init: 2}}";
  EXPECT_EQ(exit_code(train("learned", {"--train.max_steps", "20", "--model.attention", attention})), 0) << log();
  const nlohmann::json record = last_record("learned", "attention");
  for (const char* const name : {"encoder_self.0.span.0", "decoder_self.0.span.1"}) {
    ASSERT_TRUE(record.contains(name)) << name;
    EXPECT_NE(record[name], 2);
    EXPECT_NEAR(record[name], 2, 1.5) << name;
  }
  EXPECT_GT(record["encoder_self.0.sparsity"], 0);
  EXPECT_THAT(bytes_of(path("learned") / "train.log"), HasSubstr("encoder_self.0.span by head "));
  EXPECT_NEAR(last_record("learned", "train")["penalty"], 1e-4 * 4, 2e-4);
  EXPECT_FALSE(last_record("run", "train").contains("penalty"));
}

TEST_F(RunFolderOfTraining, OfAnotherConfigurationIsRefusedWithTheKeysThatDiffer) {
  EXPECT_EQ(exit_code(train("run", {"--model.d_ff", "48", "--train.lr", "1e-3"})), 2);
  EXPECT_THAT(log(), AllOf(HasSubstr("holds a run of another configuration"), HasSubstr("model.d_ff: 64 and 48"),
                           HasSubstr("train.lr: 0.003 and 0.001"), HasSubstr("train.overwrite: true")));
  EXPECT_TRUE(fs::exists(path("run") / "step_20"));
}

TEST_F(RunFolderOfTraining, WithoutItsConfigurationHasThatOfItsNewestCheckpoint) {
  fs::remove(path("run") / "config.yaml");
  EXPECT_EQ(exit_code(train("run", {"--train.lr", "1e-3"})), 2);
  EXPECT_THAT(log(), AllOf(HasSubstr("holds a run of another configuration"), HasSubstr("train.lr: 0.003 and 0.001")));
}

TEST_F(RunFolderOfTraining, OfAnotherConfigurationIsReplacedIfSoAsked) {
  EXPECT_EQ(exit_code(train("run", {"--model.d_ff", "48", "--train.overwrite", "true", "--train.max_steps", "10"})), 0) << log();
  EXPECT_FALSE(fs::exists(path("run") / "step_20"));
  EXPECT_EQ(records("run", "train").size(), 2u);
  for (const char* const name : {"step_10", "cache", "train.log", "config.yaml"}) EXPECT_TRUE(fs::exists(path("run") / name)) << name;
  EXPECT_THAT(bytes_of(path("run") / "train.log"), AllOf(HasSubstr("an epoch: "), Not(HasSubstr("step 20"))));
  EXPECT_THAT(bytes_of(path("run") / "config.yaml"), HasSubstr("d_ff: 48"));
}

TEST_F(RunFolderOfTraining, StaysWholeIfTheOneThatIsToReplaceItCannotStart) {
  fs::copy(path("run") / "step_20", path("other"));
  const auto entries = [&] {
    std::set<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(path("run"))) names.insert(entry.path().filename().string());
    return names;
  };
  const std::set<std::string> before = entries();
  const std::string log_before = bytes_of(path("run") / "train.log");
  const auto refused = [&](std::vector<std::string> overrides) {
    overrides.insert(overrides.end(), {"--train.overwrite", "true", "--train.max_steps", "30"});
    EXPECT_EQ(exit_code(train("run", overrides)), 2);
    EXPECT_EQ(entries(), before);
    EXPECT_EQ(bytes_of(path("run") / "train.log"), log_before);
    return log();
  };
  const std::string best = path("run/best").string();
  EXPECT_THAT(refused({"--train.lr", "1e-3", "--train.init_from", best, "--train.reset", "[optimizer,lr,data,best]"}),
              HasSubstr("train.init_from is " + best + ", a part of the run"));
  EXPECT_THAT(refused({"--model.d_ff", "48", "--train.init_from", path("other").string()}), HasSubstr("weights do not fit the model"));
  EXPECT_THAT(refused({"--model.d_ff", "48", "--data.vocab", path("nowhere").string()}), HasSubstr("nowhere"));
}

TEST_F(RunFolderOfTraining, AnotherLengthAndFrequencyAreTheSameRun) {
  EXPECT_EQ(
      exit_code(train("run", {"--train.max_steps", "30", "--train.log_every", "10", "--train.keep_last", "1", "--train.patience", "9"})), 0)
      << log();
  EXPECT_THAT(log(), HasSubstr("going on after step 20"));
}

TEST_F(RunFolderOfTraining, AnotherCorpusIsRefused) {
  write_corpus("train", 1000, 3, same);
  EXPECT_EQ(exit_code(train("run", {"--train.max_steps", "30"})), 2);
  EXPECT_THAT(log(), AllOf(HasSubstr("the training corpora are not those"), HasSubstr("train.reset: [data]")));
  EXPECT_EQ(exit_code(train("run", {"--train.max_steps", "30", "--train.reset", "[data]"})), 0) << log();
}

TEST_F(RunFolderOfTraining, ADamagedCheckpointIsNamed) {
  fs::resize_file(path("run") / "step_20/trainer.safetensors", 100);
  EXPECT_EQ(exit_code(train("run", {"--train.max_steps", "30"})), 2);
  EXPECT_THAT(log(), AllOf(HasSubstr("step_20/trainer.safetensors is damaged"), HasSubstr("cut short")));
}

TEST_F(RunFolderOfTraining, AnEmptyCheckpointIsSaidAndLeft) {
  fs::create_directory(path("run") / "step_99");
  EXPECT_EQ(exit_code(train("run", {"--train.max_steps", "30"})), 0) << log();
  EXPECT_THAT(log(), AllOf(HasSubstr("step_99 is an empty folder"), HasSubstr("going on after step 20")));
}

TEST_F(RunFolderOfTraining, ADamagedCheckpointIsSetAside) {
  fs::copy(path("run") / "step_20", path("run") / "step_25");
  fs::resize_file(path("run") / "step_25/model.safetensors", 100);
  EXPECT_EQ(exit_code(train("run", {"--train.max_steps", "30"})), 0) << log();
  EXPECT_THAT(log(), AllOf(HasSubstr("step_25/model.safetensors is damaged"), HasSubstr("goes on from " + path("run/step_20").string()),
                           HasSubstr("set aside as " + path("run/step_25.damaged").string()), HasSubstr("going on after step 20")));
  EXPECT_TRUE(fs::exists(path("run") / "step_25.damaged/manifest.json"));
}

TEST_F(RunFolderOfTraining, ThatIsRemovedOrRenamedEndsTraining) {
  for (const bool is_removed : {true, false}) {
    Program program(train("gone", {"--train.max_steps", "100000"}), path("log"));
    wait_for_step(program, "gone", 15);
    fs::rename(path("gone"), path("moved"));
    EXPECT_EQ(program.wait(), 1);
    EXPECT_THAT(log(), HasSubstr("gone is not the folder any more that this process works in"));
    EXPECT_FALSE(fs::exists(path("gone")));
    if (is_removed) fs::remove_all(path("moved"));
  }
  fs::rename(path("moved"), path("gone"));
  EXPECT_EQ(exit_code(train("gone", {"--train.max_steps", "40"})), 0) << log();
}

TEST_F(RunFolderOfTraining, ANewRunStartsFromAnother) {
  const std::string from = path("run/last").string();
  EXPECT_EQ(exit_code(train("tuned", {"--train.init_from", from, "--train.reset", "[optimizer,lr,data,best]", "--train.max_steps", "5"})),
            0)
      << log();
  EXPECT_THAT(log(), HasSubstr("starting from " + from));
  EXPECT_LT(records("tuned", "train").front()["loss"], records("run", "train").front()["loss"]);
  EXPECT_EQ(last_record("tuned", "train")["step"], 5);
}

TEST_F(RunFolderOfTraining, StartingFromAnotherWithItsStateGoesOnAfterItsStep) {
  EXPECT_EQ(exit_code(train("tuned", {"--train.init_from", path("run/last").string(), "--train.max_steps", "25"})), 0) << log();
  EXPECT_EQ(records("tuned", "train").front()["step"], 25);
}

TEST_F(RunFolderOfTraining, StartingWhereTrainingEndsIsRefusedWithWhatStartsAnew) {
  EXPECT_EQ(exit_code(train("tuned", {"--train.init_from", path("run/last").string(), "--train.max_steps", "15"})), 2);
  EXPECT_THAT(log(), AllOf(HasSubstr("stands where training ends: 20 of 15 updates (train.max_steps)"),
                           HasSubstr("Set train.reset: [optimizer, lr, data, best]")));
}

TEST_F(RunFolderOfTraining, StartingFromWeightsAloneNeedsAFullReset) {
  EXPECT_EQ(exit_code(train("tuned", {"--train.init_from", path("run/step_10").string(), "--train.reset", "[optimizer]"})), 2);
  EXPECT_THAT(log(), AllOf(HasSubstr("holds weights only"), HasSubstr("train.reset: [optimizer, lr, data, best]")));
}

TEST_F(RunFolderOfTraining, ItsCheckpointsAreAveraged) {
  const std::string run = path("run").string(), output = path("mean").string();
  EXPECT_EQ(exit_code({"average", "-o", output, run, "--last", "2"}), 0) << log();
  EXPECT_TRUE(fs::exists(fs::path(output) / "model.safetensors"));
  EXPECT_EQ(exit_code({"average", "-o", output, run, "--best", "1"}), 0) << log();
  EXPECT_EQ(bytes_of(fs::path(output) / "model.safetensors"), bytes_of(path("run/best/model.safetensors")));
  EXPECT_EQ(exit_code({"average", "-o", output, run + "/step_10", run + "/step_20"}), 0) << log();
}

TEST_F(RunFolderOfTraining, AveragingSaysWhatItLacks) {
  const std::string run = path("run").string(), output = path("mean").string();
  EXPECT_EQ(exit_code({"average", "-o", output, run, run, "--last", "2"}), 2);
  EXPECT_THAT(log(), HasSubstr("takes one run folder"));
  EXPECT_EQ(exit_code({"average", "-o", output, path("nothing").string(), "--last", "2"}), 2);
  EXPECT_THAT(log(), HasSubstr("holds no checkpoints"));
  EXPECT_EQ(exit_code({"average", "-o", output, path("nothing").string()}), 2);
  EXPECT_THAT(log(), HasSubstr("does not exist"));
  EXPECT_FALSE(fs::exists(output));
}

TEST_F(RunFolderOfTraining, IsAveragedAnewForAnotherNumberOfCheckpoints) {
  const auto averaged = [&](const std::string& number) {
    EXPECT_EQ(exit_code(train("run", {"--train.max_steps", "20", "--train.average_last", number})), 0) << log();
    return log();
  };
  EXPECT_THAT(averaged("2"), HasSubstr("averaged the last 2 checkpoints"));
  EXPECT_THAT(averaged("2"), HasSubstr("nothing to do"));
  EXPECT_THAT(averaged("1"), HasSubstr("one checkpoint is its own average"));
  EXPECT_THAT(averaged("1"), HasSubstr("nothing to do"));
}

TEST_F(RunFolderOfTraining, LosesAnAverageThatTrainingGoesOnPast) {
  EXPECT_EQ(exit_code(train("run", {"--train.max_steps", "20", "--train.average_last", "2"})), 0) << log();
  EXPECT_TRUE(fs::exists(path("run/averaged")));
  EXPECT_EQ(exit_code(train("run", {"--train.max_steps", "30"})), 0) << log();
  EXPECT_THAT(log(), HasSubstr("averaged is removed: training has gone past it"));
  EXPECT_FALSE(fs::exists(path("run/averaged")));
}

TEST_F(RunFolderOfTraining, IsNotReplacedByAnAverage) {
  const std::string run = path("run").string();
  EXPECT_EQ(exit_code({"average", "-o", run, run, "--last", "2"}), 2);
  EXPECT_THAT(log(), HasSubstr("which is read; name another folder"));
  EXPECT_EQ(exit_code({"average", "-o", (path("run") / "tensorboard").string(), run, "--last", "2"}), 2);
  EXPECT_THAT(log(), HasSubstr("is no checkpoint"));
  for (const char* const link : {"best", "last/"}) {
    EXPECT_EQ(exit_code({"average", "-o", run + "/" + link, run + "/step_10"}), 2);
    EXPECT_THAT(log(), HasSubstr("which is a link, as a run folder has to its checkpoints; name another folder"));
  }
  EXPECT_TRUE(fs::is_symlink(path("run/best")));
  EXPECT_TRUE(fs::exists(path("run") / "step_20/model.safetensors"));
}

TEST_F(RunFolderOfTraining, SetsOfOneNameAreRefused) {
  const std::string file = path("valid.src").string(), set = "{src: " + file + ", tgt: " + file + "}";
  EXPECT_EQ(exit_code(train("alike", {"--data.valid", "[" + set + ", " + set + "]"})), 2);
  EXPECT_THAT(log(), AllOf(HasSubstr("are called \"valid\""), HasSubstr("give it a name of its own")));
}

TEST_F(RunFolderOfTraining, MissingSacreBleuIsSaidBeforeTraining) {
  EXPECT_EQ(exit_code(train("scored", {"--train.valid_translate", "true", "--sacrebleu", "/nowhere/sacrebleu"})), 2);
  EXPECT_THAT(log(), AllOf(HasSubstr("sacrebleu"), Not(HasSubstr("step 1"))));
  EXPECT_FALSE(fs::exists(path("scored")));
}

TEST_F(RunFolderOfTraining, AMissingSetIsSaidBeforeAnythingIsRead) {
  for (const char* const key : {"data.valid", "data.test"}) {
    const std::string missing = "{src: " + path("valid.src").string() + ", tgt: " + path("nowhere").string() + "}";
    EXPECT_EQ(exit_code(train("typo", {std::string("--") + key, missing})), 2);
    EXPECT_THAT(log(), AllOf(HasSubstr("nowhere: there is no such file; expected target text of " + std::string(key)),
                             Not(HasSubstr("tokenizing"))));
    EXPECT_FALSE(fs::exists(path("typo")));
  }
}

TEST_F(RunFolderOfTraining, SaysIfItEndsBeforeTheWarmUp) {
  EXPECT_EQ(exit_code(train("brief", {"--train.max_steps", "5"})), 0) << log();
  EXPECT_THAT(log(), HasSubstr("train.warmup_steps is 20 and the run ends at about step 5: the learning rate never reaches its peak"));
}

TEST_F(RunFolderOfTraining, BatchTokensAutoIsChosenOnce) {
  EXPECT_EQ(exit_code(train("auto", {"--train.batch_tokens", "auto", "--train.max_steps", "2"})), 0) << log();
  const std::string config = bytes_of(path("auto") / "config.yaml");
  EXPECT_THAT(config, Not(HasSubstr("batch_tokens: auto")));
  EXPECT_EQ(exit_code(train("auto", {"--train.batch_tokens", "auto", "--train.max_steps", "3"})), 0) << log();
  EXPECT_THAT(log(), AllOf(HasSubstr("going on after step 2"), Not(HasSubstr("GiB free"))));
}

}  // namespace
}  // namespace lacuna
