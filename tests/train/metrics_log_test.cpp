#include "train/metrics_log.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "../base/child.h"
#include "../base/scratch_folder.h"
#include "base/durable_files.h"
#include "base/error.h"

namespace lacuna {
namespace {

class MetricsLogTest : public testing::Test {
 protected:
  std::string content() const { return bytes_of(file_); }
  void set_content(const std::string& text) const { folder_.write("metrics.jsonl", text); }

  const ScratchFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "metrics.jsonl";
};

TEST_F(MetricsLogTest, EveryRecordIsALineAtOnceWithItsFieldsInOrder) {
  MetricsLog log(file_);
  log.write({{"step", 100}, {"loss", 2.5}, {"kind", "train"}});
  EXPECT_EQ(content(), "{\"step\":100,\"loss\":2.5,\"kind\":\"train\"}\n");
}

TEST_F(MetricsLogTest, NotANumberIsNull) {
  MetricsLog(file_).write({{"step", 1}, {"loss", std::nan("")}});
  EXPECT_EQ(content(), "{\"step\":1,\"loss\":null}\n");
}

TEST_F(MetricsLogTest, AFullDiskIsNamedWithTheSystemsReason) {
  MetricsLog log("/dev/full");
  EXPECT_THAT(message_of<MachineError>([&] {
                log.write({{"step", 1}});
              }),
              testing::HasSubstr("/dev/full: cannot be written: No space left"));
}

TEST_F(MetricsLogTest, ANewRunStartsANewFile) {
  set_content("{\"step\":1}\n");
  const MetricsLog log(file_);
  EXPECT_EQ(content(), "");
}

TEST_F(MetricsLogTest, AnInterruptedRunLeavesTheFileOfAnUninterruptedOne) {
  {
    MetricsLog log(file_);
    for (int step = 1; step <= 5; ++step) log.write({{"step", step}});
  }
  MetricsLog log(file_, 3);
  for (int step = 4; step <= 5; ++step) log.write({{"step", step}});
  EXPECT_EQ(content(), "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"step\":4}\n{\"step\":5}\n");
}

TEST_F(MetricsLogTest, AValidationThatIsDueAgainIsNotThereTwice) {
  const std::string before = R"({"step":2,"kind":"valid"})"
                             "\n"
                             R"({"step":3,"kind":"train"})"
                             "\n";
  set_content(before + R"({"step":3,"kind":"valid"})"
                       "\n"
                       R"({"step":3,"kind":"attention"})"
                       "\n");
  { const MetricsLog log(file_, 3, /*validation_is_due=*/true); }
  EXPECT_EQ(content(), before);
}

TEST_F(MetricsLogTest, ALastLineCutShortByACrashIsDropped) {
  set_content("{\"step\":1}\n{\"step\":2,\"lo");
  const MetricsLog log(file_, 7);
  EXPECT_EQ(content(), "{\"step\":1}\n");
}

TEST_F(MetricsLogTest, ZerosThatALossOfPowerLeftAreDroppedAndSaid) {
  for (const std::string& end : {std::string("\0\0\0", 3), std::string("\0\0{\n", 4)}) {
    set_content("{\"step\":1}\n" + end);
    testing::internal::CaptureStderr();
    const MetricsLog log(file_, 7);
    EXPECT_EQ(content(), "{\"step\":1}\n");
    EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("metrics.jsonl: 1 line with zeros"));
  }
}

TEST_F(MetricsLogTest, RecordsOfAFileThatIsGoneCannotBeSynced) {
  MetricsLog log(file_);
  log.write({{"step", 1}});
  log.sync();
  std::filesystem::remove(file_);
  EXPECT_THAT(message_of<MachineError>([&] { log.sync(); }), testing::HasSubstr("metrics.jsonl: No such file"));
}

TEST_F(MetricsLogTest, WhatAStartThatWasKilledHasLeftBesideItGoes) {
  set_content("{\"step\":1}\n{\"step\":2}\n");
  const std::string machine = WriterProcess().name().substr(0, 17);
  const std::filesystem::path left = file_.string() + ".lacuna-tmp." + machine + "99999999.0";  // no process has that number
  std::ofstream(left) << "{";
  const MetricsLog log(file_, 1);
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_EQ(content(), "{\"step\":1}\n");
}

TEST_F(MetricsLogTest, ResumingWithoutAFileStartsOne) {
  MetricsLog(file_, 7).write({{"step", 8}});
  EXPECT_EQ(content(), "{\"step\":8}\n");
}

TEST_F(MetricsLogTest, ALineThatIsNoRecordIsNamedAndNothingIsLost) {
  const std::string damaged = "{\"step\":1}\nloss 3\n{\"step\":2}\n";
  set_content(damaged);
  EXPECT_THAT(message_of<DataError>([&] { const MetricsLog log(file_, 1); }), testing::HasSubstr("metrics.jsonl:2: not a record"));
  EXPECT_EQ(content(), damaged);
}

TEST_F(MetricsLogTest, AFileThatCannotBeReadIsNamedAndNothingIsLost) {
  constexpr uid_t kNobody = 65534;
  set_content("{\"step\":1}\n");
  std::filesystem::permissions(file_, std::filesystem::perms::none);
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
  EXPECT_EQ(exit_code_of_child([&] {
              if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) return 1;  // root may read everything
              const std::string message = message_of<DataError>([&] { const MetricsLog log(file_, 1); });
              return message == file_.string() + ": cannot be read: Permission denied" ? 0 : 2;
            }),
            0);
  std::filesystem::permissions(file_, std::filesystem::perms::owner_all);
  EXPECT_EQ(content(), "{\"step\":1}\n");
}

TEST_F(MetricsLogTest, AFullDiskIsReported) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full on this machine";
  MetricsLog log("/dev/full");
  EXPECT_THROW(log.write({{"step", 1}}), MachineError);
}

}  // namespace
}  // namespace lacuna
