#include "ranks/launcher.h"

#include <gmock/gmock.h>

#include <thread>

#include "../base/child.h"
#include "../base/scratch_folder.h"
#include "base/interrupt.h"
#include "ranks/numa.h"

namespace lacuna {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A launcher of shell scripts, in a folder, as a process of its own.
struct Launcher {
  ScratchFolder folder;

  pid_t start(const std::string& script, Launch launched) const {
    launched.command = {"/bin/sh", "-c", "cd " + folder.path().string() + "; " + script};
    return start_child([&] {
      setpgid(0, 0);
      if (std::freopen((folder / "log").c_str(), "w", stderr) == nullptr) return 98;
      handle_interrupts();
      return launch(launched);
    });
  }
  int run(const std::string& script, const Launch& launched) const { return exit_code_of(start(script, launched)); }
  std::string log() const { return bytes_of(folder / "log"); }
  bool has(const std::string& file) const { return std::filesystem::exists(folder / file); }
};

TEST(Launch, TellsEachProcessItsPlace) {
  const Launcher launcher;
  EXPECT_EQ(
      launcher.run("echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR ${MASTER_PORT:+port} ${LACUNA_STORE_SOCKET:+socket} "
                   "> $RANK; test -z \"$LACUNA_STORE_SOCKET\" || test -S /proc/self/fd/$LACUNA_STORE_SOCKET",
                   {.ranks = 2}),
      0);
  EXPECT_EQ(bytes_of(launcher.folder / "0"), "0/2 0/2 127.0.0.1 port socket\n");
  EXPECT_EQ(bytes_of(launcher.folder / "1"), "1/2 1/2 127.0.0.1 port\n");
}

TEST(Launch, TheSecondMachineHasTheLaterRanks) {
  const Launcher launcher;
  EXPECT_EQ(launcher.run("echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT $GROUP_WORLD_SIZE > $LOCAL_RANK",
                         {.ranks = 2, .machines = 2, .machine = 1, .address = "node1", .port = 29500}),
            0);
  EXPECT_EQ(bytes_of(launcher.folder / "1"), "3/4 1/2 node1 29500 2\n");
}

TEST(Launch, HasTheExitCodeOfTheProcessAtFault) {
  const Launcher launcher;
  EXPECT_EQ(launcher.run("test $RANK = 1 && exit 3; sleep 0.2; exit 75", {.ranks = 3}), 3);
  EXPECT_THAT(launcher.log(), HasSubstr("rank 1 (pid "));
  EXPECT_THAT(launcher.log(), HasSubstr("ended with exit code 3"));
  EXPECT_EQ(launcher.run("test $RANK = 1 && { sleep 0.3; exit 3; }; exit 75", {.ranks = 3}), 3);
  EXPECT_EQ(launcher.run("test $RANK = 1 && kill -9 $$; sleep 0.2; exit 75", {.ranks = 3}), 137);
  EXPECT_THAT(launcher.log(), HasSubstr("was ended by signal 9 (Killed)"));
  EXPECT_EQ(launcher.run("exit 75", {.ranks = 2}), 75);
}

TEST(Launch, KillsWhatDoesNotEnd) {
  const Launcher launcher;
  EXPECT_EQ(launcher.run("trap '' TERM; echo > trapped$RANK; test $RANK = 1 && { until test -e trapped0; do sleep 0.01; done; exit 2; }; "
                         "sleep 30 & wait",
                         {.ranks = 2, .patience = seconds(1)}),
            2);
  EXPECT_THAT(launcher.log(), HasSubstr("rank 0 (pid "));
  EXPECT_THAT(launcher.log(), HasSubstr("is killed"));
}

TEST(Launch, KillsWhatHangsBehindTheOthers) {
  const Launcher launcher;
  EXPECT_EQ(launcher.run("trap '' TERM; test $RANK = 1 && exit 0; sleep 30 & wait", {.ranks = 2, .patience = seconds(1)}), 137);
  EXPECT_THAT(launcher.log(), HasSubstr("has not ended 1 s after another one, and is killed"));
}

TEST(Launch, AsksThoseToEndThatWaitForAFailedOne) {
  const Launcher launcher;
  EXPECT_EQ(launcher.run("test $RANK = 1 && exit 3; sleep 30 & wait", {.ranks = 2, .patience = seconds(5)}), 3);
  EXPECT_THAT(launcher.log(), Not(HasSubstr("is killed")));
}

TEST(Launch, StartsAllAgainAfterALoss) {
  const Launcher launcher;
  const std::string script =
      "echo $TORCHELASTIC_RESTART_COUNT >> starts$RANK; test $TORCHELASTIC_RESTART_COUNT = 2 && exit 0; test $RANK = 0 && kill -9 $$; exit "
      "75";
  EXPECT_EQ(launcher.run(script, {.ranks = 2, .restarts = 3}), 0);
  EXPECT_EQ(bytes_of(launcher.folder / "starts1"), "0\n1\n2\n");
  EXPECT_THAT(launcher.log(), HasSubstr("all ranks are started again (restart 2 of 3)"));
}

TEST(Launch, DoesNotRepeatMistakes) {
  const Launcher launcher;
  EXPECT_EQ(launcher.run("echo >> starts; exit 2", {.ranks = 1, .restarts = 3}), 2);
  EXPECT_EQ(bytes_of(launcher.folder / "starts"), "\n");
  EXPECT_EQ(launcher.run("echo >> losses; exit 75", {.ranks = 1, .restarts = 2}), 75);
  EXPECT_EQ(bytes_of(launcher.folder / "losses"), "\n\n\n");
}

TEST(Launch, ForwardsASignalOnce) {
  const Launcher launcher;
  const pid_t id = launcher.start("trap 'echo >> told$RANK; exit 143' TERM; echo > started$RANK; while :; do sleep 0.05; done",
                                  {.ranks = 2, .restarts = 1});
  EXPECT_TRUE(comes_true([&] { return launcher.has("started0") && launcher.has("started1"); }));
  kill(id, SIGTERM);
  EXPECT_EQ(exit_code_of(id), 143);
  EXPECT_EQ(bytes_of(launcher.folder / "told0") + bytes_of(launcher.folder / "told1"), "\n\n");
}

TEST(Launch, LeavesNobodyBehindWhenItIsKilled) {
  const Launcher launcher;
  const pid_t id = launcher.start("echo $$ > id$RANK; mv id$RANK started$RANK; while :; do sleep 0.05; done", {.ranks = 2});
  EXPECT_TRUE(comes_true([&] { return launcher.has("started0") && launcher.has("started1"); }));
  kill_child(id);
  for (const char* const file : {"started0", "started1"}) {
    const pid_t rank = std::stoi(bytes_of(launcher.folder / file));
    EXPECT_TRUE(comes_true(
        [&] { return kill(rank, 0) != 0 || bytes_of("/proc/" + std::to_string(rank) + "/stat").find(") Z") != std::string::npos; }));
  }
}

TEST(Numa, ReadsTheListsOfTheKernel) {
  EXPECT_THAT(cpus_of_list("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(cpus_of_list("7"), ElementsAre(7));
  EXPECT_THAT(cpus_of_list(""), IsEmpty());
}

TEST(Numa, GivesNodesWithCpusThatMayBeUsed) {
  const ScratchFolder folder;
  for (const auto& [name, list] :
       {std::pair("node0", "0-3"), std::pair("node1", "4-7"), std::pair("node10", "8-9"), std::pair("possible", "0-1")}) {
    std::filesystem::create_directory(folder / name);
    folder.write(std::string(name) + "/cpulist", std::string(list) + "\n");
  }
  const std::vector<NumaNode> nodes = numa_nodes({2, 3, 8}, folder.path());
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].number, 0);
  EXPECT_THAT(nodes[0].cpus, ElementsAre(2, 3));
  EXPECT_EQ(nodes[1].number, 10);
  EXPECT_THAT(nodes[1].cpus, ElementsAre(8));
  EXPECT_THAT(nodes_of_ranks(nodes, 4), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(nodes_of_ranks(nodes, 1), ElementsAre(0));
}

}  // namespace
}  // namespace lacuna
