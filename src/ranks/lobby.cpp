#include "ranks/lobby.h"

#include <spdlog/fmt/fmt.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>

#include "ranks/group.h"
#include "ranks/stage.h"

namespace lacuna {
namespace {

constexpr std::chrono::milliseconds kGlance{1};
constexpr std::chrono::seconds kAnswer{10};
constexpr size_t kMostUnknown = 64, kLongestWords = 4096;

}  // namespace

std::string Lobby::open(const std::string& address, const std::string& name) {
  const std::lock_guard lock(mutex_);
  listening_ = listen_at(address, 0);
  id_ = new_start_id();
  is_entered_ = true;
  return packed({id_, std::to_string(port_of(listening_)), name});
}

void Lobby::enter(const std::string& invitation, const std::string& address, const std::string& name) {
  const std::vector<std::string> told = unpacked(invitation);
  const auto port = static_cast<uint16_t>(std::stoi(told.at(1)));
  std::string problem;
  Socket socket = connect_to(address, port, kAnswer, problem);
  if (!socket)
    throw LostRankError(
        fmt::format("{} does not answer at {}, port {}: {}. Has it ended? Is a firewall between?", told.at(2), address, port, problem));
  const std::lock_guard lock(mutex_);
  guests_.push_back({.link = Link(std::move(socket)), .rank = 0, .name = told.at(2)});
  guests_.back().link.send(fmt::format("hello {} {} {}", told.at(0), rank_, name));
  is_entered_ = true;
}

bool Lobby::is_entered() const {
  const std::lock_guard lock(mutex_);
  return is_entered_;
}

void Lobby::look() {
  const std::lock_guard lock(mutex_);
  accept();
  for (Guest& guest : guests_) read(guest);
  std::erase_if(guests_, [](const Guest& guest) { return !guest.link.is_open(); });
  if (rank_ != 0 || are_all_joined_ || !have_all_joined()) return;
  say("all");
  are_all_joined_ = true;
}

void Lobby::join(std::chrono::milliseconds patience) {
  {
    const std::lock_guard lock(mutex_);
    has_joined_ = true;
    say("joined");
  }
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;; std::this_thread::sleep_for(kGlance)) {
    look();
    const std::lock_guard lock(mutex_);
    if (are_all_joined_) return;
    if (std::chrono::steady_clock::now() > end) close("not all ranks could be connected with each other in time. Is a firewall between?");
  }
}

void Lobby::leave(const std::string& why) {
  const std::lock_guard lock(mutex_);
  say(why.empty() ? "bye" : (rank_ == 0 ? "lost " : "leave ") + why);
}

void Lobby::accept() {
  while (listening_ && guests_.size() < static_cast<size_t>(size_) + kMostUnknown) {
    Socket socket(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    guests_.push_back({.link = Link(std::move(socket))});
  }
}

void Lobby::read(Guest& guest) {
  std::vector<std::string> lines;
  guest.link.flush();
  const bool is_alive = guest.link.read_lines(lines, kLongestWords);
  for (const std::string& line : lines)
    if (guest.link.is_open()) obey(guest, line);
  if (is_alive || !guest.link.is_open()) return;
  guest.link.close();
  if (guest.rank >= 0 && !are_all_joined_) close(guest.name + " has ended before all ranks were there. The same command starts again");
}

/// Does what a line of another rank says. One that has not said who it is must know the lobby's id.
void Lobby::obey(Guest& guest, const std::string& line) {
  const size_t space = line.find(' ');
  const std::string word = line.substr(0, space), rest = space == std::string::npos ? "" : line.substr(space + 1);
  if (guest.rank < 0) {
    const std::string greeting = fmt::format("hello {} ", id_);
    if (!line.starts_with(greeting)) return guest.link.close();
    const size_t name = std::min(line.find(' ', greeting.size()), line.size() - 1);
    guest.rank = std::max(0, std::atoi(line.c_str() + greeting.size()));
    guest.name = line.substr(name + 1);
  } else if (word == "joined") {
    guest.has_joined = true;
  } else if (word == "all") {
    are_all_joined_ = true;
  } else if (word == "bye") {
    guest.link.close();
  } else if (word == "leave" || word == "lost") {
    close(rest);
  }
}

void Lobby::close(const std::string& why) {
  is_closed_ = true;
  if (rank_ == 0) say("lost " + why);
  throw LostRankError(why);
}

void Lobby::say(const std::string& line) {
  for (Guest& guest : guests_)
    if (guest.link.is_open() && guest.rank >= 0) guest.link.send(line);
}

bool Lobby::have_all_joined() const {
  return has_joined_ && std::ranges::count_if(guests_, &Guest::has_joined) == size_ - 1;
}

}  // namespace lacuna
