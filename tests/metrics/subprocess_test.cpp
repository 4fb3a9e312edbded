#include "metrics/subprocess.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "scratch.h"

namespace lacuna {
namespace {

using testing::HasSubstr;

TEST(Subprocess, GivesOutputErrorsAndExitCode) {
  const ProcessResult result = run_process({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.errors, "err\n");
  EXPECT_EQ(result.exit_code, 3);
}

TEST(Subprocess, NoShellReadsTheArguments) {
  EXPECT_EQ(run_process({"printf", "%s", "$HOME; *"}).output, "$HOME; *");
}

TEST(Subprocess, LargeOutputOnBothStreamsDoesNotBlock) {
  const ProcessResult result = run_process({"sh", "-c", "head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero"});
  EXPECT_EQ(result.output.size(), 1000000u);
  EXPECT_EQ(result.errors.size(), 1000000u);
}

TEST(Subprocess, StandardInputIsEmpty) {
  EXPECT_EQ(run_process({"cat"}).output, "");
}

TEST(Subprocess, DeathBySignalCountsAsInShells) {
  EXPECT_EQ(run_process({"sh", "-c", "kill -9 $$"}).exit_code, 137);
}

TEST(Subprocess, EnvironmentChangesReachTheChildOnly) {
  const ScopedVariable gone("LACUNA_TEST_GONE", "here"), kept("LACUNA_TEST_KEPT", "kept");
  const ProcessResult result = run_process({"sh", "-c", "echo \"${LACUNA_TEST_GONE-unset} $LACUNA_TEST_KEPT $LACUNA_TEST_NEW\""},
                                           {{"LACUNA_TEST_GONE", {}}, {"LACUNA_TEST_NEW", "new"}});
  EXPECT_EQ(result.output, "unset kept new\n");
  EXPECT_STREQ(std::getenv("LACUNA_TEST_GONE"), "here");
}

TEST(Subprocess, HasAProcessGroupOfItsOwn) {
  const ProcessResult result = run_process({"sh", "-c", "echo $$; ps -o pgid= -p $$ 2>/dev/null || cut -d' ' -f5 /proc/$$/stat"});
  const size_t line_end = result.output.find('\n');
  EXPECT_EQ(std::stoi(result.output.substr(0, line_end)), std::stoi(result.output.substr(line_end)));
}

TEST(Subprocess, AMissingProgramIsNamed) {
  EXPECT_THAT(message_of<MachineError>([] { run_process({"/no/such/program"}); }),
              HasSubstr("cannot start /no/such/program: No such file"));
}

TEST(Subprocess, LastErrorsSkipBlankLines) {
  const ProcessResult result = {.errors = "one\n\ntwo\nthree\n\n"};
  EXPECT_EQ(result.last_errors(2), "  two\n  three");
}

TEST(FindProgram, LooksOnPath) {
  const Scratch scratch;
  const auto program = scratch.write_program("some-program", "exit 0");
  const ScopedVariable path("PATH", "/nowhere:" + scratch.path().string());
  EXPECT_EQ(find_program("some-program"), program);
}

TEST(FindProgram, IgnoresFilesThatCannotRunAndFolders) {
  const Scratch scratch;
  scratch.write("text", "");
  std::filesystem::create_directory(scratch.path() / "folder");
  const ScopedVariable path("PATH", scratch.path().string());
  EXPECT_FALSE(find_program("text"));
  EXPECT_FALSE(find_program("folder"));
}

}  // namespace
}  // namespace lacuna
