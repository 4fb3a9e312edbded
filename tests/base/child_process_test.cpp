#include "base/child_process.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "../base/scratch_folder.h"
#include "base/error.h"

namespace lacuna {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ChildProcess, GivesWhatTheWorkGives) {
  EXPECT_EQ(run_in_child([] { return std::string(1000000, 'x'); }, "working"), std::string(1000000, 'x'));
  EXPECT_EQ(run_in_child([] { return std::string(); }, "working"), "");
}

TEST(ChildProcess, ThrowsTheErrorsOfTheWork) {
  EXPECT_EQ(message_of<DataError>([] { run_in_child([]() -> std::string { throw DataError("a:1: bad"); }, "working"); }), "a:1: bad");
  EXPECT_EQ(message_of<MachineError>([] { run_in_child([]() -> std::string { throw MachineError("full"); }, "working"); }), "full");
}

TEST(ChildProcess, TurnsACrashIntoAnError) {
  const auto crash = []() -> std::string {
    kill(getpid(), SIGKILL);
    return "never";
  };
  EXPECT_THAT(message_of<MachineError>([&] { run_in_child(crash, "training"); }), AllOf(HasSubstr("training"), HasSubstr("signal 9")));
  const auto leave = []() -> std::string { _exit(3); };
  EXPECT_THAT(message_of<MachineError>([&] { run_in_child(leave, "training"); }), HasSubstr("without a result"));
}

int64_t anonymous_memory_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::stoll(line.substr(8));
  return 0;
}

TEST(ChildProcess, GivesItsMemoryBack) {
  const int64_t before = anonymous_memory_kb();
  const auto use_memory = [] { return std::to_string(std::string(200 << 20, 'x').find('y')); };
  run_in_child(use_memory, "working");
  EXPECT_LT(anonymous_memory_kb() - before, 20 << 10);
}

}  // namespace
}  // namespace lacuna
