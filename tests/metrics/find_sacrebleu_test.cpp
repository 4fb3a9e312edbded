#include <gmock/gmock.h>

#include "base/error.h"
#include "scratch.h"

namespace lacuna {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(FindSacrebleu, TakesTheConfiguredCommandApart) {
  const Scratch scratch;
  scratch.write_program("my-python", "exit 0");
  const ScopedVariable path("PATH", scratch.path().string());
  EXPECT_THAT(find_sacrebleu("my-python -m sacrebleu").command, ElementsAre("my-python", "-m", "sacrebleu"));
}

TEST(FindSacrebleu, AConfiguredPathMayHoldSpaces) {
  const Scratch scratch;
  const std::string program = scratch.write_program("my sacrebleu", "exit 0");
  EXPECT_THAT(find_sacrebleu(program).command, ElementsAre(program));
}

TEST(FindSacrebleu, AMissingConfiguredCommandIsAConfigurationError) {
  EXPECT_THAT(message_of<ConfigError>([] { find_sacrebleu("sacrebleuu -x"); }), HasSubstr("sacrebleu is \"sacrebleuu -x\""));
}

TEST(FindSacrebleu, PrefersTheProgramOnPath) {
  const Scratch scratch;
  const std::string program = scratch.write_program("sacrebleu", "exit 0");
  const ScopedVariable path("PATH", scratch.path().string());
  EXPECT_THAT(find_sacrebleu().command, ElementsAre(program));
}

/// A project folder with a built program, and with a Python in its virtual environment that says whether it has sacreBLEU.
struct Project : Scratch {
  explicit Project(bool has_sacrebleu) {
    std::filesystem::create_directories(path() / "build/cpu");
    std::filesystem::create_directories(path() / ".venv/bin");
    program = write("build/cpu/lacuna", "");
    python = write_program(".venv/bin/python", has_sacrebleu ? "exit 0" : "exit 1");
  }
  std::filesystem::path program, python;
};

TEST(FindSacrebleu, TakesTheProjectsEnvironmentWhenThereIsNoneOnPath) {
  const Project project(true);
  const ScopedVariable path("PATH", "");
  EXPECT_THAT(find_sacrebleu("", project.program).command, ElementsAre(project.python.string(), "-m", "sacrebleu"));
}

TEST(FindSacrebleu, TakesThePackageOfPythonLast) {
  const Project project(false);
  const Scratch scratch;
  const std::string python = scratch.write_program("python3", "exit 0");
  const ScopedVariable path("PATH", scratch.path().string());
  EXPECT_THAT(find_sacrebleu("", project.program).command, ElementsAre(python, "-m", "sacrebleu"));
}

TEST(FindSacrebleu, AMissingOneSaysHowToGetIt) {
  const Project project(false);
  const ScopedVariable path("PATH", "");
  const std::string message = message_of<MachineError>([&] { find_sacrebleu("", project.program); });
  EXPECT_THAT(message, HasSubstr("scripts/setup.sh"));
  EXPECT_THAT(message, HasSubstr("pip install sacrebleu==2.6.0"));
}

}  // namespace
}  // namespace lacuna
