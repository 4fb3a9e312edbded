#include "ranks/lobby.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <memory>
#include <thread>
#include <vector>

#include "../base/child.h"
#include "../base/scratch_folder.h"
#include "ranks/group.h"
#include "ranks/stage.h"

namespace lacuna {
namespace {

using testing::HasSubstr;

std::string name_of(int rank) {
  return std::string("rank ").append(std::to_string(rank)).append(" (here)");
}

/// The lobbies of three ranks, connected.
struct Lobbies {
  std::vector<std::unique_ptr<Lobby>> of_rank;
  std::string invitation;

  Lobbies() {
    for (int rank = 0; rank < 3; ++rank) of_rank.push_back(std::make_unique<Lobby>(rank, 3));
    invitation = of_rank[0]->open("127.0.0.1", name_of(0));
    for (const int rank : {1, 2}) of_rank[static_cast<size_t>(rank)]->enter(invitation, "127.0.0.1", name_of(rank));
    for (int i = 0; i < 50; ++i) look_at_all();
  }
  void look_at_all() const {
    for (const auto& lobby : of_rank)
      if (lobby) lobby->look();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  /// What a rank learns of a loss.
  std::string loss_at(size_t rank) const {
    return message_of<LostRankError>([&] {
      for (int i = 0; i < 1000; ++i) {
        of_rank[rank]->look();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    });
  }
};

TEST(Lobby, AllLearnThatARankHasEnded) {
  Lobbies all;
  all.of_rank[1].reset();
  EXPECT_THAT(all.loss_at(0), HasSubstr("rank 1 (here) has ended before all ranks were there"));
  EXPECT_THAT(all.loss_at(2), HasSubstr("rank 1 (here) has ended before all ranks were there"));
  EXPECT_TRUE(all.of_rank[0]->is_closed());
}

TEST(Lobby, AllLearnThatRankZeroHasEnded) {
  Lobbies all;
  all.of_rank[0].reset();
  EXPECT_THAT(all.loss_at(1), HasSubstr("rank 0 (here) has ended before all ranks were there"));
  EXPECT_THAT(all.loss_at(2), HasSubstr("rank 0 (here) has ended before all ranks were there"));
}

TEST(Lobby, AllLearnWhyARankGivesUp) {
  Lobbies all;
  all.of_rank[2]->leave("no way to rank 1");
  EXPECT_EQ(all.loss_at(0), "no way to rank 1");
  EXPECT_EQ(all.loss_at(1), "no way to rank 1");
}

TEST(Lobby, ARankThatLeavesInPeaceIsNotLost) {
  Lobbies all;
  all.of_rank[1]->leave();
  all.of_rank[1].reset();
  for (int i = 0; i < 50; ++i) all.look_at_all();
  EXPECT_FALSE(all.of_rank[0]->is_closed());
}

TEST(Lobby, IsDoneWhenAllHaveJoined) {
  Lobbies all;
  std::vector<std::thread> threads;
  for (const auto& lobby : all.of_rank) threads.emplace_back([&lobby] { lobby->join(std::chrono::seconds(30)); });
  for (std::thread& thread : threads) thread.join();
  all.of_rank[1].reset();
  for (int i = 0; i < 50; ++i) all.look_at_all();
  EXPECT_FALSE(all.of_rank[0]->is_closed());
}

TEST(Lobby, DoesNotWaitWithoutEnd) {
  const Lobbies all;
  EXPECT_THAT(message_of<LostRankError>([&] { all.of_rank[0]->join(std::chrono::milliseconds(50)); }), HasSubstr("firewall"));
}

TEST(Lobby, TurnsStrangersAway) {
  Lobbies all;
  const std::string port = unpacked(all.invitation).at(1);
  std::string problem;
  const Socket stranger = connect_to("127.0.0.1", static_cast<uint16_t>(std::stoi(port)), std::chrono::seconds(5), problem);
  ASSERT_TRUE(stranger) << problem;
  EXPECT_EQ(send(stranger.get(), "hello 1 1 me\n", 13, 0), 13);
  char byte = 0;
  EXPECT_TRUE(comes_true([&] {
    all.look_at_all();
    return recv(stranger.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }));
  EXPECT_FALSE(all.of_rank[0]->is_closed());
}

TEST(Lobby, SaysThatRankZeroDoesNotAnswer) {
  std::string invitation;
  {
    Lobby first(0, 2);
    invitation = first.open("127.0.0.1", "rank 0 (here)");
  }
  Lobby second(1, 2);
  EXPECT_THAT(message_of<LostRankError>([&] { second.enter(invitation, "127.0.0.1", "rank 1 (here)"); }),
              HasSubstr("rank 0 (here) does not answer at 127.0.0.1, port "));
}

}  // namespace
}  // namespace lacuna
