#include "ranks/place.h"

#include <gmock/gmock.h>

#include <map>
#include <string>

#include "../base/scratch_folder.h"
#include "base/error.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

RankPlace place_of(const Variables& variables) {
  return place_from([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string error_of(const Variables& variables) {
  return message_of<UsageError>([&] { place_of(variables); });
}

Variables with(Variables variables, const Variables& others) {
  for (const auto& [name, value] : others) variables[name] = value;
  return variables;
}

const Variables kTwo = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
const Variables kStep = {{"SLURM_STEP_ID", "0"},
                         {"SLURM_STEP_NUM_TASKS", "5"},
                         {"SLURM_PROCID", "4"},
                         {"SLURM_LOCALID", "0"},
                         {"SLURM_STEP_NODELIST", "gpu[07-08],x1"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                         {"SLURM_NODEID", "2"},
                         {"SLURM_JOB_ID", "4711"},
                         {"SLURM_STEP_NUM_NODES", "3"}};

TEST(RankPlace, IsASingleProcessWithoutVariables) {
  const RankPlace place = place_of({});
  EXPECT_TRUE(place.is_alone());
  EXPECT_EQ(place.rank, 0);
  EXPECT_EQ(place.told_by, "");
}

TEST(RankPlace, EmptyVariablesCountAsNotSet) {
  EXPECT_TRUE(place_of({{"RANK", ""}, {"WORLD_SIZE", ""}}).is_alone());
}

TEST(RankPlace, AWorldOfOneNeedsNoMore) {
  EXPECT_TRUE(place_of({{"WORLD_SIZE", "1"}}).is_alone());
  EXPECT_TRUE(place_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).is_alone());
}

TEST(RankPlace, OfAShellScriptHasAMachineOfItsOwn) {
  const RankPlace place = place_of(kTwo);
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.size, 2);
  EXPECT_EQ(place.local_rank, 0);
  EXPECT_EQ(place.local_size, 1);
  EXPECT_EQ(place.address, "node1");
  EXPECT_EQ(place.port, 29500);
  EXPECT_FALSE(place.has_agent);
  EXPECT_EQ(place.told_by, "RANK and WORLD_SIZE");
}

TEST(RankPlace, OfAShellScriptForOneMachineSharesIt) {
  const RankPlace place = place_of(with(kTwo, {{"MASTER_ADDR", "127.0.0.1"}}));
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_size, 2);
}

TEST(RankPlace, OfTorchrunKnowsItsAgent) {
  const RankPlace place = place_of(with(kTwo, {{"LOCAL_RANK", "1"},
                                               {"LOCAL_WORLD_SIZE", "2"},
                                               {"GROUP_WORLD_SIZE", "1"},
                                               {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                               {"TORCHELASTIC_RESTART_COUNT", "3"}}));
  EXPECT_TRUE(place.has_agent);
  EXPECT_EQ(place.restart, 3);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.nodes, 1);
}

TEST(RankPlace, OfOpenMpiOnOneMachineNeedsNoAddress) {
  const RankPlace place = place_of({{"OMPI_COMM_WORLD_RANK", "2"},
                                    {"OMPI_COMM_WORLD_SIZE", "3"},
                                    {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                                    {"SLURM_STEP_ID", "0"},
                                    {"SLURM_STEP_NUM_TASKS", "2"}});
  EXPECT_EQ(place.rank, 2);
  EXPECT_EQ(place.address, "127.0.0.1");
  EXPECT_EQ(place.port, 29500);
}

TEST(RankPlace, OfMpiOnSeveralMachinesNeedsAnAddress) {
  const Variables variables = {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}};
  EXPECT_THAT(error_of(variables), AllOf(HasSubstr("mpirun (MPICH)"), HasSubstr("MASTER_ADDR is not set")));
  EXPECT_EQ(place_of(with(variables, {{"MASTER_ADDR", "node1"}})).local_size, 2);
}

TEST(RankPlace, OfASlurmStepIsDerivedFromIt) {
  const RankPlace place = place_of(kStep);
  EXPECT_EQ(place.rank, 4);
  EXPECT_EQ(place.size, 5);
  EXPECT_EQ(place.local_size, 1);
  EXPECT_EQ(place.address, "gpu07");
  EXPECT_EQ(place.port, 15000 + (4711 * 10) % 10000);
  EXPECT_EQ(place.nodes, 3);
}

TEST(RankPlace, TheScriptOfASlurmJobIsASingleProcess) {
  EXPECT_TRUE(place_of({{"SLURM_JOB_ID", "4711"}, {"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}).is_alone());
}

TEST(RankPlace, ASlurmStepOfOneTaskIsASingleProcess) {
  EXPECT_TRUE(place_of({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}).is_alone());
}

TEST(RankPlace, FirstHostOfSlurmLists) {
  EXPECT_EQ(first_host("node1"), "node1");
  EXPECT_EQ(first_host("node1,node2"), "node1");
  EXPECT_EQ(first_host("node[07-09,12],gpu1"), "node07");
  EXPECT_EQ(first_host("node[3]"), "node3");
  EXPECT_EQ(first_host("rack[1-2]node[05-06]-eth,x"), "rack1node05-eth");
  EXPECT_EQ(first_host("node["), "");
  EXPECT_EQ(first_host(""), "");
}

TEST(RankPlace, HalfSetIsRefusedByName) {
  EXPECT_THAT(error_of({{"RANK", "1"}}), AllOf(HasSubstr("RANK=1"), HasSubstr("WORLD_SIZE is not set")));
  EXPECT_THAT(error_of({{"WORLD_SIZE", "4"}}), AllOf(HasSubstr("WORLD_SIZE=4"), HasSubstr("RANK is not set")));
  EXPECT_THAT(error_of({{"PMI_SIZE", "4"}}), HasSubstr("PMI_RANK is not set"));
  EXPECT_THAT(error_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), HasSubstr("MASTER_ADDR is not set"));
  EXPECT_THAT(error_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}), HasSubstr("MASTER_PORT is not set"));
  EXPECT_THAT(error_of(with(kTwo, {{"LOCAL_RANK", "1"}})), HasSubstr("LOCAL_WORLD_SIZE is not set"));
  EXPECT_THAT(error_of(with(kStep, {{"SLURM_STEP_NODELIST", ""}})), HasSubstr("SLURM_STEP_NODELIST"));
}

TEST(RankPlace, ContradictionsAreRefusedByName) {
  EXPECT_THAT(error_of(with(kTwo, {{"RANK", "2"}})), AllOf(HasSubstr("RANK=2"), HasSubstr("WORLD_SIZE=2"), HasSubstr("from 0 to 1")));
  EXPECT_THAT(error_of(with(kTwo, {{"RANK", "one"}})), HasSubstr("RANK=one; expected a whole number from 0"));
  EXPECT_THAT(error_of(with(kTwo, {{"RANK", "-1"}})), HasSubstr("RANK=-1"));
  EXPECT_THAT(error_of(with(kTwo, {{"WORLD_SIZE", "0"}})), HasSubstr("WORLD_SIZE=0"));
  EXPECT_THAT(error_of(with(kTwo, {{"MASTER_PORT", "70000"}})), HasSubstr("MASTER_PORT=70000"));
  EXPECT_THAT(error_of(with(kTwo, {{"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}})), HasSubstr("LOCAL_RANK=2"));
  EXPECT_THAT(error_of(with(kStep, {{"SLURM_LOCALID", "7"}})), HasSubstr("SLURM_LOCALID=7"));
}

}  // namespace
}  // namespace lacuna
