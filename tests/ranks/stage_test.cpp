#include "ranks/stage.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>

#include <new>
#include <stdexcept>

#include "../base/scratch_folder.h"
#include "thread_group.h"

namespace lacuna {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

Failure failure_of(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    return Failure(std::current_exception());
  }
  return {"nothing was thrown", 0};
}

/// Returns the error that a rank of several has thrown.
Failure thrown_by(const std::vector<std::exception_ptr>& thrown, size_t rank) {
  return thrown[rank] ? Failure(thrown[rank]) : Failure("nothing was thrown", 0);
}

TEST(Stage, AFailureKeepsMessageAndExitCode) {
  EXPECT_EQ(failure_of([] { throw UsageError("a flag"); }).exit_code, 2);
  EXPECT_EQ(failure_of([] { throw MachineError("a disk"); }).exit_code, 1);
  EXPECT_EQ(failure_of([] { throw LostRankError("a rank"); }).exit_code, kLostRankCode);
  EXPECT_EQ(failure_of([] { throw std::bad_alloc(); }).text, "out of memory");
  EXPECT_THAT(failure_of([] { TORCH_CHECK(false, "a tensor"); }).text, StartsWith("LibTorch: a tensor"));
  const Failure read = Failure::of_bytes(Failure("12 apples, \n a line", 2).bytes());
  EXPECT_EQ(read.text, "12 apples, \n a line");
  EXPECT_EQ(read.exit_code, 2);
  EXPECT_THROW(Failure::of_bytes("none"), std::logic_error);
}

TEST(Stage, PacksTextsOfAnyBytes) {
  const std::string zeros(3, '\0');
  EXPECT_THAT(unpacked(packed({"", "12 34", zeros, "\n"})), ElementsAre("", "12 34", zeros, "\n"));
  EXPECT_THAT(unpacked(packed({})), IsEmpty());
  EXPECT_THROW(unpacked("9 short"), std::logic_error);
  EXPECT_THROW(unpacked("short"), std::logic_error);
}

TEST(Stage, EndsNobodyWhereAllSucceed) {
  const auto thrown = run_on_ranks(3, [](Group& group) {
    EXPECT_EQ(on_all_ranks(group, [&] { return group.rank() * 10; }), group.rank() * 10);
    end_together(group, {});
    EXPECT_EQ(from_first(group, [&] { return "of " + std::to_string(group.rank()); }), "of 0");
    at_first(group, [&] { EXPECT_TRUE(group.is_first()); });
  });
  EXPECT_THAT(thrown, testing::Each(nullptr));
}

TEST(Stage, AllEndWithTheErrorOfTheLowestRankThatFails) {
  const auto thrown = run_on_ranks(4, [](Group& group) {
    on_all_ranks(group, [&] {
      if (group.rank() == 2) throw UsageError("what rank 2 has met");
      if (group.rank() == 3) throw MachineError("what rank 3 has met");
    });
  });
  for (size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(thrown_by(thrown, rank).exit_code, 2) << rank;
  EXPECT_THAT(thrown_by(thrown, 0).text, StartsWith("rank 2 ("));
  EXPECT_THAT(thrown_by(thrown, 0).text, HasSubstr("): what rank 2 has met"));
  for (const size_t rank : {1, 2, 3}) EXPECT_EQ(thrown_by(thrown, rank).text, "") << "one rank tells it for a machine; rank " << rank;
  EXPECT_TRUE(has_ended_together());
}

TEST(Stage, RankZeroThrowsItsOwnError) {
  const auto thrown = run_on_ranks(2, [](Group& group) { at_first(group, [] { throw DataError("a file"); }); });
  EXPECT_THROW(std::rethrow_exception(thrown[0]), DataError);
  EXPECT_THROW(std::rethrow_exception(thrown[1]), OtherRankError);
  EXPECT_EQ(thrown_by(thrown, 0).exit_code, thrown_by(thrown, 1).exit_code);
}

TEST(Stage, OneProcessThrowsWhatItMeets) {
  EXPECT_THROW(on_all_ranks(no_group(), []() -> int { throw UsageError("a flag"); }), UsageError);
  EXPECT_THROW(end_together(no_group(), std::make_exception_ptr(DataError("a file"))), DataError);
  EXPECT_EQ(from_first(no_group(), [] { return std::string("a"); }), "a");
}

TEST(Stage, RanksOfOneMachineHaveTheSameFirstOne) {
  run_on_ranks(3, [](Group& group) {
    EXPECT_EQ(first_rank_of_machine(group), 0);
    EXPECT_THAT(name_of_rank(group), StartsWith("rank " + std::to_string(group.rank()) + " ("));
  });
}

}  // namespace
}  // namespace lacuna
