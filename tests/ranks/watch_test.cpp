#include "ranks/watch.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <fstream>
#include <functional>

#include "../base/child.h"
#include "../base/scratch_folder.h"
#include "local_places.h"
#include "ranks/gloo_group.h"

namespace lacuna {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

constexpr int kLost = 75;

/// Processes that serve a run, each of which does `work` under a watch and then ends with 0. What each writes to stderr is a file.
class Ranks {
 public:
  using Work = std::function<void(Group&, Watch&)>;

  Ranks(int size, milliseconds timeout, const Work& work) {
    for (const RankPlace& place : local_places(size)) {
      ids_.push_back(start_child([&] {
        const std::string errors = errors_of(place.rank);
        if (std::freopen(errors.c_str(), "w", stderr) == nullptr) return 98;
        const std::unique_ptr<Group> group = join(place);
        {
          Watch watch(*group, {.timeout = timeout});
          group->gather_to_all("connected");
          std::ofstream(errors + ".ready").flush();
          work(*group, watch);
        }
        group->gather_to_all("end");
        return 0;
      }));
      if (place.listening_socket >= 0) close(place.listening_socket);
    }
    EXPECT_TRUE(comes_true([&] {
      for (int rank = 0; rank < size; ++rank)
        if (!std::filesystem::exists(errors_of(rank) + ".ready")) return false;
      return true;
    }));
  }

  pid_t id(int rank) const { return ids_[static_cast<size_t>(rank)]; }
  int exit_code(int rank) const { return exit_code_of(id(rank)); }
  std::string errors(int rank) const { return bytes_of(errors_of(rank)); }

 private:
  std::string errors_of(int rank) const { return folder_ / std::to_string(rank); }

  ScratchFolder folder_;
  std::vector<pid_t> ids_;
};

void wait_for_message(Group& group, Watch& watch) {
  watch.at(1203, "backward");
  if (group.rank() == 1) std::this_thread::sleep_for(seconds(60));
  try {
    group.gather_to_all("more");
  } catch (const LostRankError& error) {
    watch.end(error);
  }
}

TEST(Watch, ASingleRankIsNotWatched) {
  AloneGroup group;
  Watch watch(group);
  watch.at(1, "forward");
  watch.say_why_we_leave("nothing");
  EXPECT_EQ(message_of<LostRankError>([&] { watch.end(LostRankError("text")); }), "text");
}

TEST(Watch, LetsRanksEndInOrder) {
  const Ranks ranks(3, seconds(2), [](Group& group, Watch& watch) {
    watch.at(1, "forward");
    std::this_thread::sleep_for(milliseconds(100 * group.rank()));
  });
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ranks.exit_code(rank), 0);
    EXPECT_EQ(ranks.errors(rank), "");
  }
}

TEST(Watch, NamesARankThatIsKilledOnce) {
  const Ranks ranks(3, seconds(60), wait_for_message);
  std::this_thread::sleep_for(milliseconds(1200));  // for a heartbeat
  kill(ranks.id(1), SIGKILL);
  for (const int rank : {0, 2}) EXPECT_EQ(ranks.exit_code(rank), kLost);
  EXPECT_EQ(ranks.exit_code(1), kKilled);
  EXPECT_THAT(ranks.errors(0),
              AllOf(HasSubstr("error rank 1 ("), HasSubstr("pid " + std::to_string(ranks.id(1)) + ") is gone: last heard of"),
                    HasSubstr("step 1203, backward. The same command goes on")));
  EXPECT_EQ(std::ranges::count(ranks.errors(0), '\n'), 1);
  EXPECT_EQ(ranks.errors(2), "");
}

TEST(Watch, RankZeroIsMissedToo) {
  const Ranks ranks(3, seconds(60), wait_for_message);
  kill(ranks.id(0), SIGKILL);
  for (const int rank : {1, 2}) EXPECT_EQ(ranks.exit_code(rank), kLost);
  EXPECT_EQ(ranks.exit_code(0), kKilled);
  EXPECT_THAT(ranks.errors(1), AllOf(HasSubstr("error rank 0 ("), HasSubstr("is gone")));
  EXPECT_EQ(ranks.errors(2), "");
}

TEST(Watch, FindsARankThatIsSilent) {
  const Ranks ranks(2, seconds(1), wait_for_message);
  kill(ranks.id(1), SIGSTOP);
  EXPECT_EQ(ranks.exit_code(0), kLost);
  EXPECT_THAT(ranks.errors(0), AllOf(HasSubstr("error rank 1 ("), HasSubstr("does not answer: last heard of 1.")));
  kill(ranks.id(1), SIGCONT);
  EXPECT_EQ(ranks.exit_code(1), kLost);
}

TEST(Watch, BearsAShortPause) {
  const Ranks ranks(2, seconds(2), [](Group& group, Watch&) {
    if (!group.is_first()) std::this_thread::sleep_for(milliseconds(2500));
    group.gather_to_all("after");
  });
  kill(ranks.id(1), SIGSTOP);
  std::this_thread::sleep_for(milliseconds(1000));
  kill(ranks.id(1), SIGCONT);
  for (const int rank : {0, 1}) EXPECT_EQ(ranks.exit_code(rank), 0);
}

TEST(Watch, PassesOnWhyARankFails) {
  const Ranks ranks(3, seconds(60), [](Group& group, Watch& watch) {
    if (group.rank() != 2) return wait_for_message(group, watch);
    watch.at(7, "forward");
    watch.say_why_we_leave("the disk is full");
    _exit(1);
  });
  EXPECT_EQ(ranks.exit_code(2), 1);
  for (const int rank : {0, 1}) EXPECT_EQ(ranks.exit_code(rank), kLost);
  EXPECT_THAT(ranks.errors(0), HasSubstr("has failed (step 7, forward): the disk is full. The same command"));
}

TEST(Watch, RankZeroSaysWhyItFails) {
  const Ranks ranks(2, seconds(60), [](Group& group, Watch& watch) {
    if (!group.is_first()) return wait_for_message(group, watch);
    watch.say_why_we_leave("the disk is full");
    _exit(1);
  });
  EXPECT_EQ(ranks.exit_code(0), 1);
  EXPECT_EQ(ranks.exit_code(1), kLost);
  EXPECT_THAT(ranks.errors(1), HasSubstr("has failed (starting): the disk is full"));
}

TEST(Watch, ReportsAFailedMessageWhereNobodyIsMissed) {
  const Ranks ranks(2, seconds(60), [](Group& group, Watch& watch) {
    if (!group.is_first()) watch.end(LostRankError("rank 0 is gone (made up)"));
    std::this_thread::sleep_for(seconds(60));
  });
  for (const int rank : {0, 1}) EXPECT_EQ(ranks.exit_code(rank), kLost);
  EXPECT_THAT(ranks.errors(0), HasSubstr("error rank 0 is gone (made up)"));
}

TEST(Watch, FinishesWorkAndWritesTorchrunsFile) {
  const ScratchFolder folder;
  const ScopedVariable file("TORCHELASTIC_ERROR_FILE", folder / "error.json");
  const std::vector<RankPlace> places = local_places(2);
  const pid_t lost = start_child([&] {
    const std::unique_ptr<Group> group = join(places[1]);
    const Watch watch(*group);
    group->gather_to_all("connected");
    return _exit(3), 0;
  });
  const pid_t left = start_child([&] {
    const std::unique_ptr<Group> group = join(places[0]);
    const Watch watch(*group, {.before_end = [&] { folder.write("finished", ""); }});
    group->gather_to_all("connected");
    std::this_thread::sleep_for(seconds(60));
    return 0;
  });
  close(places[0].listening_socket);
  EXPECT_EQ(exit_code_of(lost), 3);
  EXPECT_EQ(exit_code_of(left), kLost);
  EXPECT_TRUE(std::filesystem::exists(folder / "finished"));
  EXPECT_THAT(bytes_of(folder / "error.json"), AllOf(HasSubstr("{\"message\":\"rank 1 ("), HasSubstr("\"timestamp\":")));
}

/// Returns the ports at which a process of ours listens.
std::vector<uint16_t> listening_ports() {
  std::vector<uint16_t> ports;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int file = std::stoi(entry.path().filename().string());
    int listens = 0;
    socklen_t size = sizeof listens;
    if (getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
    Socket socket(file);
    ports.push_back(port_of(socket));
    socket.release();
  }
  return ports;
}

TEST(Watch, BearsStrangersAtItsPort) {
  const Ranks ranks(2, seconds(60), [](Group& group, Watch&) {
    if (group.is_first()) {
      const std::string words[] = {"",
                                   "x",
                                   "\n\n\n",
                                   "GET / HTTP/1.1\r\n\r\n",
                                   std::string(100'000, 'a'),
                                   "hello 1234 1\nlost 1 nonsense\n",
                                   std::string("\0\xff\n", 3)};
      const std::vector<uint16_t> ports = listening_ports();
      EXPECT_FALSE(ports.empty());
      const uint16_t port = ports.back();  // the latest: that of the watch
      for (const std::string& text : words) {
        std::string problem;
        const Socket socket = connect_to("127.0.0.1", port, seconds(1), problem);
        EXPECT_TRUE(socket) << problem;
        [[maybe_unused]] const ssize_t sent = send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
      }
      std::this_thread::sleep_for(milliseconds(300));
    }
    group.gather_to_all("after");
  });
  for (const int rank : {0, 1}) EXPECT_EQ(ranks.exit_code(rank), 0) << ranks.errors(rank);
}

}  // namespace
}  // namespace lacuna
