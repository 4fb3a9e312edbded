#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "../base/child.h"
#include "../base/scratch_folder.h"
#include "local_places.h"
#include "ranks/gloo_group.h"
#include "ranks/gpu_group.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Calls `work` in a thread for each place.
void in_threads(const std::vector<RankPlace>& places, const std::function<void(const RankPlace&)>& work) {
  std::vector<std::thread> threads;
  threads.reserve(places.size());
  for (const RankPlace& place : places) threads.emplace_back([&work, &place] { work(place); });
  for (std::thread& thread : threads) thread.join();
}

void in_groups(int size, const std::function<void(Group&)>& work) {
  in_threads(local_places(size), [&](const RankPlace& place) {
    const std::unique_ptr<Group> group = join(place);
    work(*group);
    group->gather_to_all("end");
  });
}

size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

TEST(Group, ASingleProcessOpensNothing) {
  const size_t before = open_files();
  const std::unique_ptr<Group> group = join({});
  EXPECT_EQ(open_files(), before);
  EXPECT_TRUE(group->is_alone());
  EXPECT_THAT(group->gather("a"), ElementsAre("a"));
  EXPECT_EQ(group->broadcast("a"), "a");
  EXPECT_THAT(group->name_of(0), HasSubstr("pid " + std::to_string(getpid())));
}

TEST(Group, BytesOfAllSizesArrive) {
  in_groups(5, [](Group& group) {
    for (const size_t size : {0, 1, 1016, 1017, 300'000}) {
      const auto bytes_of = [&](int rank) { return std::string(size, static_cast<char>('a' + rank)); };
      const std::vector<std::string> all = {bytes_of(0), bytes_of(1), bytes_of(2), bytes_of(3), bytes_of(4)};
      EXPECT_EQ(group.gather(bytes_of(group.rank())), group.is_first() ? all : std::vector<std::string>());
      EXPECT_EQ(group.gather_to_all(bytes_of(group.rank())), all);
      EXPECT_EQ(group.broadcast(bytes_of(group.rank())), all[0]);
    }
  });
}

TEST(Group, TensorsCrossEachOther) {
  in_groups(3, [](Group& group) {
    const int next = (group.rank() + 1) % 3, last = (group.rank() + 2) % 3;
    const at::Tensor first = at::full({1000}, group.rank(), at::kFloat), second = at::full({7}, group.rank() + 10, at::kBFloat16),
                     got_first = at::empty({1000}), got_second = at::empty({7}, at::kBFloat16);
    const std::unique_ptr<Transfer> of_second = group.exchange({{second, next}}, {{got_second, last}}, 8),
                                    of_first = group.exchange({{first, next}}, {{got_first, last}}, 7);
    of_first->wait();
    of_second->wait();
    EXPECT_TRUE(got_first.eq(last).all().item<bool>());
    EXPECT_TRUE(got_second.eq(last + 10).all().item<bool>());
  });
}

TEST(Group, KnowsTheDeviceThatTwoRanksHave) {
  EXPECT_EQ(shared_device({"a cuda:0", "a cuda:1", "b cuda:0"}), "");
  EXPECT_EQ(shared_device({"a cuda:0", "b cuda:1", "b cuda:1"}), "b cuda:1");
  EXPECT_EQ(device_of_rank("cpu", {.rank = 1, .size = 2, .local_rank = 1, .local_size = 2}), "cpu");
}

TEST(Group, NamesRanksAndTheStart) {
  std::string ids[2];
  in_groups(2, [&](Group& group) {
    EXPECT_THAT(group.name_of(1), AllOf(HasSubstr("rank 1 ("), HasSubstr("pid " + std::to_string(getpid()))));
    ids[group.rank()] = group.start_id();
  });
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(ids[0].size(), 32u);
}

TEST(Group, LeavesNothingOpen) {
  in_groups(2, [](Group&) {});
  const size_t before = open_files();
  for (int i = 0; i < 5; ++i) in_groups(2, [](Group&) {});
  EXPECT_TRUE(comes_true([&] { return open_files() <= before; }));
}

TEST(Group, SaysWhoIsMissing) {
  const std::vector<RankPlace> places = local_places(4);
  in_threads({places[0], places[2]}, [](const RankPlace& place) {
    EXPECT_THAT(message_of<LostRankError>([&] { join(place, {.joining = std::chrono::milliseconds(300)}); }),
                AnyOf(AllOf(HasSubstr("ranks 1, 3 did not come to 127.0.0.1"), HasSubstr("2 of 4 are there")), HasSubstr("do not meet")));
  });
}

TEST(Group, SaysThatRankZeroDoesNotAnswer) {
  RankPlace place = {.rank = 1, .size = 2, .address = "127.0.0.1", .port = port_of(listen_at("127.0.0.1", 0))};
  EXPECT_THAT(message_of<LostRankError>([&] { join(place, {.joining = std::chrono::milliseconds(300)}); }),
              AllOf(HasSubstr("rank 0 does not answer at 127.0.0.1, port " + std::to_string(place.port)), HasSubstr("Connection refused")));
  place.address = "no-such-host.invalid";
  EXPECT_THAT(message_of<LostRankError>([&] { join(place, {.joining = std::chrono::milliseconds(1)}); }),
              HasSubstr("no-such-host.invalid"));
}

TEST(Group, GivesUpWhereWhatListensNeverAnswers) {
  const Socket silent = listen_at("127.0.0.1", 0);
  const RankPlace place = {.rank = 1, .size = 2, .address = "127.0.0.1", .port = port_of(silent)};
  EXPECT_THAT(message_of<LostRankError>([&] { join(place, {.joining = std::chrono::milliseconds(100)}); }),
              HasSubstr("what listens at 127.0.0.1, port " + std::to_string(place.port) + ", does not answer"));
}

TEST(Group, RefusesAnotherNumberOfRanks) {
  std::vector<RankPlace> places = local_places(2);
  places[1].size = 3;
  in_threads(places, [](const RankPlace& place) {
    EXPECT_THAT(message_of<UsageError>([&] { join(place, {.joining = std::chrono::seconds(2)}); }),
                AllOf(HasSubstr("is one of 2"), HasSubstr("is one of 3")));
  });
}

TEST(Group, RefusesOnePlaceForTwoRanks) {
  std::vector<RankPlace> places = local_places(2);
  places[1].local_rank = 0;
  in_threads(places, [](const RankPlace& place) {
    EXPECT_THAT(message_of<UsageError>([&] { join(place); }),
                AllOf(HasSubstr("ranks 0 and 1 are on one machine"), HasSubstr("LOCAL_RANK")));
  });
}

TEST(Group, NamesARankThatIsGone) {
  const std::vector<RankPlace> places = local_places(2);
  const pid_t child = start_child([&] {
    const std::unique_ptr<Group> group = join(places[1]);
    group->gather_to_all("here");
    return 0;
  });
  const std::unique_ptr<Group> group = join(places[0]);
  group->gather_to_all("here");
  EXPECT_EQ(exit_code_of(child), 0);
  EXPECT_THAT(message_of<LostRankError>([&] { group->gather("more"); }),
              AllOf(HasSubstr("rank 1 ("), HasSubstr("pid " + std::to_string(child)), HasSubstr("is gone")));
}

TEST(Group, NamesARankThatIsSilent) {
  const std::vector<RankPlace> places = local_places(2);
  in_threads(places, [](const RankPlace& place) {
    const std::unique_ptr<Group> group = join(place, {.operation = std::chrono::milliseconds(500)});
    group->gather_to_all("here");
    if (group->is_first())
      EXPECT_THAT(message_of<LostRankError>([&] { group->gather("more"); }), AllOf(HasSubstr("rank 1 ("), HasSubstr("does not answer")));
    else
      std::this_thread::sleep_for(std::chrono::seconds(1));
  });
}

TEST(Group, APortThatIsTakenIsNamed) {
  const Socket taken = listen_at("127.0.0.1", 0);
  const RankPlace place = {.size = 2, .address = "127.0.0.1", .port = port_of(taken)};
  EXPECT_THAT(message_of<MachineError>([&] { join(place); }), AllOf(HasSubstr("127.0.0.1, port " + std::to_string(place.port)),
                                                                    HasSubstr("Address already in use"), HasSubstr("MASTER_PORT")));
}

}  // namespace
}  // namespace lacuna
