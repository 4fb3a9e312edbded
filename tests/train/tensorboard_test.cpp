#include "train/tensorboard.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/durable_files.h"
#include "base/error.h"
#include "base/process.h"
#include "metrics/run_sacrebleu.h"

namespace lacuna {
namespace {

/// What TensorBoard's own reader finds in the folder.
nlohmann::json read_events(const std::filesystem::path& folder) {
  const char* const named = std::getenv("LACUNA_TEST_PYTHON");
  const std::string python = named != nullptr ? named : LACUNA_SOURCE_DIR "/.venv/bin/python";
  const ProcessResult result = run_process({python, READ_EVENTS, folder.string()});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  return nlohmann::json::parse(result.output);
}

nlohmann::json points(std::initializer_list<std::pair<int, double>> expected) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [step, value] : expected) list.push_back({step, value});
  return list;
}

TEST(TensorBoard, ItsOwnReaderFindsEveryPoint) {
  const TemporaryFolder folder;
  TensorBoardWriter writer(folder.path() / "tensorboard");
  writer.scalar("train/loss", 4.5, 0);
  writer.scalar("train/loss", -0.25, 300);
  writer.scalar("valid/bleu", 36.5, int64_t{1} << 40);
  writer.flush();
  const nlohmann::json events = read_events(folder.path() / "tensorboard");
  EXPECT_EQ(events.size(), 2u);
  EXPECT_EQ(events["train/loss"], points({{0, 4.5}, {300, -0.25}}));
  EXPECT_EQ(events["valid/bleu"][0][0], int64_t{1} << 40);
}

TEST(TensorBoard, EachStartWritesAFileOfItsOwn) {
  const TemporaryFolder folder;
  const TensorBoardWriter first(folder.path()), second(folder.path());
  EXPECT_NE(first.file(), second.file());
}

TEST(TensorBoard, AResumedRunReplacesThePointsAfterItsCheckpoint) {
  const TemporaryFolder folder;
  for (const auto& [start, value] : {std::pair(0, 1.0), std::pair(2, 5.0)}) {
    TensorBoardWriter writer(folder.path(), start);
    for (int step = start + 1; step <= 4; ++step) writer.scalar("loss", value, step);
    writer.flush();
  }
  EXPECT_EQ(read_events(folder.path())["loss"], points({{1, 1}, {2, 1}, {3, 5}, {4, 5}}));
}

TEST(TensorBoard, ARunThatBeginsAnewReplacesAllPoints) {
  const TemporaryFolder folder;
  for (const auto& [last, value] : {std::pair(4, 1.0), std::pair(2, 5.0)}) {  // the first one died before its first checkpoint
    TensorBoardWriter writer(folder.path());
    for (int step = 1; step <= last; ++step) writer.scalar("loss", value, step);
    writer.flush();
  }
  EXPECT_EQ(read_events(folder.path())["loss"], points({{1, 5}, {2, 5}}));
}

TEST(TensorBoard, AFolderThatCannotBeMadeIsNamed) {
  EXPECT_THROW(TensorBoardWriter("/proc/no/such"), MachineError);
}

}  // namespace
}  // namespace lacuna
