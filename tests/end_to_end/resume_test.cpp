#include <signal.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "base/random.h"
#include "program.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Resume : public DigitsTest {
 protected:
  Resume() {
    write_corpus("train", 1000, 1, reversed);
    write_corpus("valid", 50, 2, reversed);
  }

  void run_without_interruption() const { ASSERT_EQ(exit_code(train("whole", options_)), 0) << log(); }

  void expect_same_weights_as_whole(const std::string& run) const {
    for (const char* const file : {"model.safetensors", "ema.safetensors", "trainer.safetensors"})
      EXPECT_TRUE(bytes_of(path(run) / "last" / file) == bytes_of(path("whole") / "last" / file)) << run << ", " << file;
  }
  void expect_same_as_whole(const std::string& run) const {
    expect_same_weights_as_whole(run);
    for (const char* const kind : {"train", "valid", "attention"}) {
      std::vector<nlohmann::json> ours = records(run, kind), theirs = records("whole", kind);
      for (auto* const all : {&ours, &theirs})
        for (nlohmann::json& record : *all)
          for (const char* const measured : {"time", "tokens_per_second", "data_wait", "peak_mebibytes"}) record.erase(measured);
      EXPECT_EQ(ours, theirs);
      EXPECT_FALSE(ours.empty());
    }
    EXPECT_EQ(bytes_of(path(run) / "averaged/model.safetensors"), bytes_of(path("whole") / "averaged/model.safetensors"));
  }

  const std::vector<std::string> options_ = {"--train.ema_decay",    "0.9", "--train.max_steps",   "200",
                                             "--train.average_last", "3",   "--train.update_freq", "2"};
};

TEST_F(Resume, AfterSigtermIsBitForBit) {
  run_without_interruption();
  Program program(train("stopped", options_), path("log"));
  wait_for_step(program, "stopped", 35);
  program.send(SIGTERM);
  EXPECT_EQ(program.wait(), 143) << log();
  EXPECT_THAT(log(), HasSubstr(": interrupted by SIGTERM, and saved"));
  EXPECT_TRUE(records("stopped", "test").empty());
  EXPECT_LT(last_record("stopped", "train")["step"], 200);
  EXPECT_EQ(exit_code(train("stopped", options_)), 0) << log();
  EXPECT_THAT(log(), HasSubstr("going on after step"));
  expect_same_as_whole("stopped");
}

TEST_F(Resume, AfterSigintEndsWith130) {
  Program program(train("stopped", options_), path("log"));
  wait_for_step(program, "stopped", 5);
  program.send(SIGINT);
  EXPECT_EQ(program.wait(), 130) << log();
  EXPECT_THAT(log(), HasSubstr(": interrupted by SIGINT, and saved; the same command goes on from there"));
  EXPECT_TRUE(fs::exists(path("stopped") / "last" / "trainer.json"));
}

TEST_F(Resume, AfterKillsAtRandomMomentsIsBitForBit) {
  run_without_interruption();
  RandomStream random(5);
  int kills = 0;
  for (bool is_done = false; !is_done;) {
    Program program(train("killed", options_), path("log"));
    const auto patience = std::chrono::milliseconds(kills < 15 ? 150 + random.next_below(300) : 60000);
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (program.is_running() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    const bool is_killed = program.is_running();
    if (is_killed) program.send(SIGKILL);
    const int code = program.wait();
    is_done = code == 0;  // or it has ended just before
    ASSERT_TRUE(is_done || (is_killed && code == 128 + SIGKILL)) << code << log();
    kills += !is_done;
  }
  EXPECT_GT(kills, 0);
  expect_same_as_whole("killed");
}

TEST_F(Resume, WithSpansIsBitForBit) {
  const auto with_spans = [](const std::string& steps) -> std::vector<std::string> {
    return {"--train.max_steps",
            steps,
            "--train.ema_decay",
            "0.9",
            "--model.attention",
            "{encoder_self: {type: span, max_span: 8, span_init: 0, penalty: 1}, decoder_self: {type: span, span: dynamic, max_span: 8, "
            "span_init: 2}}"};
  };
  ASSERT_EQ(exit_code(train("whole", with_spans("60"))), 0) << log();
  ASSERT_EQ(exit_code(train("stopped", with_spans("30"))), 0) << log();
  ASSERT_EQ(exit_code(train("stopped", with_spans("60"))), 0) << log();
  EXPECT_THAT(log(), HasSubstr("going on after step 30"));
  expect_same_weights_as_whole("stopped");
}

TEST_F(Resume, WithMasksIsBitForBit) {
  const auto with_masks = [this](const std::string& run, const std::vector<std::string>& more = {}) {
    std::vector<std::string> options = {"--train.max_steps", "300", "--train.ema_decay", "0.9", "--model.attention", kCalibrated};
    options.insert(options.end(), more.begin(), more.end());
    return train(run, options);
  };
  ASSERT_EQ(exit_code(with_masks("whole")), 0) << log();
  Program program(with_masks("stopped"), path("log"));
  wait_for_step(program, "stopped", 20);
  program.send(SIGTERM);
  EXPECT_EQ(program.wait(), 143) << log();
  EXPECT_THAT(log(), HasSubstr(": interrupted by SIGTERM, and saved"));
  EXPECT_EQ(exit_code(with_masks("started_from_it", {"--train.init_from", path("stopped/last").string()})), 0) << log();
  EXPECT_EQ(exit_code(with_masks("stopped")), 0) << log();
  EXPECT_THAT(log(), HasSubstr("going on after step"));
  expect_same_weights_as_whole("started_from_it");
  expect_same_weights_as_whole("stopped");
}

TEST_F(Resume, AFinishedRunSaysThatThereIsNothingToDo) {
  ASSERT_EQ(exit_code(train("run")), 0) << log();
  const auto event_files = [&] { return std::distance(fs::directory_iterator(path("run") / "tensorboard"), {}); };
  const std::string weights = bytes_of(path("run") / "last/model.safetensors"), metrics = bytes_of(path("run") / "metrics.jsonl");
  std::ofstream(path("run") / "metrics.jsonl", std::ios::app) << "{\"step\": 60";  // a line cut short, which an open log would drop
  EXPECT_EQ(exit_code(train("run")), 0);
  EXPECT_THAT(log(), HasSubstr("already finished: 60 of 60 updates (train.max_steps); nothing to do"));
  EXPECT_EQ(bytes_of(path("run") / "last/model.safetensors"), weights);
  EXPECT_EQ(bytes_of(path("run") / "metrics.jsonl"), metrics + "{\"step\": 60");
  EXPECT_EQ(event_files(), 1);
}

TEST_F(Resume, AFinishedRunGoesOnWithMoreSteps) {
  ASSERT_EQ(exit_code(train("run")), 0) << log();
  EXPECT_EQ(exit_code(train("run", {"--train.max_steps", "70"})), 0) << log();
  EXPECT_EQ(last_record("run", "train")["step"], 70);
}

TEST_F(Resume, OnAnotherValidationSetScoresCountAnew) {
  write_corpus("other", 50, 3, reversed);
  const auto on_other = [&](const std::string& steps) -> std::vector<std::string> {
    return {"--train.max_steps", steps, "--data.valid",
            "[{src: " + path("other.src").string() + ", tgt: " + path("other.tgt").string() + "}]"};
  };
  ASSERT_EQ(exit_code(train("run")), 0) << log();
  EXPECT_EQ(exit_code(train("run", on_other("70"))), 0) << log();
  EXPECT_THAT(log(), HasSubstr("data.valid: the first set is another than until step 60"));
  EXPECT_EQ(nlohmann::json::parse(bytes_of(path("run") / "last/trainer.json"))["scores"]["validations"], 1);
  EXPECT_EQ(exit_code(train("run", on_other("80"))), 0) << log();
  EXPECT_THAT(log(), testing::Not(HasSubstr("data.valid: the first set")));
}

}  // namespace
}  // namespace lacuna
