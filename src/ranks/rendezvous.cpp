#include "ranks/rendezvous.h"

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/log.h"
#include "base/resources.h"
#include "ranks/sockets.h"
#include "ranks/stage.h"

namespace lacuna {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kRetryPause{100};
constexpr seconds kNotice{10};       // after which, and every which, who waits says so
constexpr seconds kGracePeriod{20};  // for ranks of a former start, which end soon, to have gone

using StorePtr = c10::intrusive_ptr<c10d::Store>;

/// What a rank tells the others in the store.
struct Card {
  Member member;
  std::string machine;      ///< the same for ranks that share one
  std::string address;      ///< by which this rank reaches rank 0's machine
  std::string destination;  ///< the address that it reached there
  int size = 0, local_rank = 0;
};

std::string text_of(const Card& card) {
  return packed({card.member.host, std::to_string(card.member.pid), card.machine, card.address, card.destination, std::to_string(card.size),
                 std::to_string(card.local_rank)});
}

Card card_of(const std::string& text) {
  const std::vector<std::string> all = unpacked(text);
  return {.member = {.host = all.at(0), .pid = std::stoll(all.at(1))},
          .machine = all.at(2),
          .address = all.at(3),
          .destination = all.at(4),
          .size = std::stoi(all.at(5)),
          .local_rank = std::stoi(all.at(6))};
}

/// Returns what tells machines apart, also those of one name.
std::string this_machine() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return host_name() + " " + boot;
}

/// True for rank 0, in whose process the store is, unless an agent such as torchrun has it.
bool owns_store(const RankPlace& place) {
  return place.rank == 0 && !place.has_agent;
}

/// Says every ten seconds what is waited for, and knows when to give up.
class Patience {
 public:
  explicit Patience(milliseconds timeout) : begin_(Clock::now()), timeout_(timeout) {}

  bool is_over() const { return Clock::now() - begin_ >= timeout_; }
  seconds waited() const { return std::chrono::duration_cast<seconds>(Clock::now() - begin_); }
  milliseconds left() const {
    return std::max(milliseconds(1), std::chrono::duration_cast<milliseconds>(timeout_ - (Clock::now() - begin_)));
  }
  /// Returns true once every ten seconds.
  bool is_noticeable() {
    if (Clock::now() - begin_ < notice_) return false;
    notice_ += kNotice;
    return true;
  }

 private:
  Clock::time_point begin_;
  milliseconds timeout_;
  seconds notice_ = kNotice;
};

/// One attempt to meet: a connection to the store, and what this rank does there.
class Meeting {
 public:
  Meeting(const RankPlace& place, Patience& patience, Lobby& lobby) : place_(place), patience_(patience), lobby_(lobby) {}

  Rendezvous run() {
    const StorePtr store = owns_store(place_) ? serve() : connect();
    // An agent's store outlives the processes; that of rank 0 is new with each of them.
    store_ = c10::make_intrusive<c10d::PrefixStore>(
        place_.has_agent ? fmt::format("lacuna/{}/{}", place_.restart, place_.size) : std::string("lacuna"), store);
    try {
      announce();
      wait_for_all();
      return result();
    } catch (const UsageError&) {
      let_others_read();
      throw;
    }
  }

 private:
  /// Opens the store of rank 0.
  StorePtr serve() {
    Socket listening =
        place_.listening_socket >= 0 ? Socket(place_.listening_socket) : listen_as(place_.address, place_.port, "MASTER_ADDR");
    fcntl(listening.get(), F_SETFD, FD_CLOEXEC);
    c10d::TCPStoreOptions options;
    options.port = port_of(listening);
    options.isServer = true;
    options.waitWorkers = false;
    options.timeout = patience_.left();
    destination_ = own_address_of(listening);
    is_at_all_addresses_ = is_at_all_addresses(listening);
    options.masterListenFd = listening.release();
    return c10::make_intrusive<c10d::TCPStore>(destination_, options);
  }

  /// Connects to the store, as soon as it is there.
  StorePtr connect() {
    for (;;) {
      std::string problem;
      for (const std::string& address : addresses_of(place_.address, problem)) {
        if (!connect_to(address, place_.port, std::min<milliseconds>(patience_.left(), seconds(5)), problem)) continue;
        destination_ = address;
        c10d::TCPStoreOptions options;
        options.port = place_.port;
        options.waitWorkers = false;
        options.timeout = patience_.left();
        return c10::make_intrusive<c10d::TCPStore>(address, options);
      }
      if (patience_.is_over())
        throw LostRankError(
            fmt::format("rank 0 does not answer at {}, port {}, for {} s: {}. Does it run, and do MASTER_ADDR and "
                        "MASTER_PORT name its machine and port? Is a firewall between?",
                        place_.address, place_.port, patience_.waited().count(), problem));
      if (patience_.is_noticeable())
        log_info("waiting for rank 0 at {}, port {}, for {} s: {}", place_.address, place_.port, patience_.waited().count(), problem);
      std::this_thread::sleep_for(kRetryPause);
    }
  }

  void announce() {
    if (store_->add(fmt::format("taken/{}", place_.rank), 1) > 1) refuse_second();
    own_ = this_member();
    const Card card = {.member = own_,
                       .machine = this_machine(),
                       .address = own_address_towards(destination_),
                       .destination = destination_,
                       .size = place_.size,
                       .local_rank = place_.local_rank};
    if (place_.rank == 0) {
      store_->set("start", new_start_id());
      open_lobby();
    }
    store_->set(key_of(place_.rank), text_of(card));
    store_->add("present", 1);
  }

  std::string own_name() const { return fmt::format("rank {} ({}, pid {})", place_.rank, own_.host, own_.pid); }

  /// Opens rank 0's lobby at the address by which others reach it; at all where that is not known.
  void open_lobby() {
    const bool is_local = place_.address == "localhost" || is_loopback(place_.address);
    std::string own = is_at_all_addresses_ ? "" : own_address_towards(destination_);
    if (is_loopback(own) && !is_local) own.clear();
    store_->set("lobby/address", own);
    store_->set("lobby", lobby_.open(own, own_name()));
  }

  /// Enters the lobby once rank 0 has opened it.
  void enter_lobby() {
    if (lobby_.is_closed()) throw LostRankError("the ranks do not meet: one of them has ended");
    if (lobby_.is_entered() || !store_->check({"lobby"})) return;
    const std::string address = store_->get_to_str("lobby/address");
    lobby_.enter(store_->get_to_str("lobby"), address.empty() || is_loopback(address) ? destination_ : address, own_name());
  }

  /// Another process has this rank: perhaps one of a former start, which ends soon, and with it the store.
  void refuse_second() {
    if (!place_.has_agent && patience_.waited() < kGracePeriod) throw std::runtime_error("a former start has not ended");
    const std::optional<Card> other = card_of_rank(place_.rank);
    throw UsageError(fmt::format("two processes have the rank {}: this one, of {}, and {}. Give each its own ({})", place_.rank,
                                 host_name(), other ? fmt::format("pid {} of {}", other->member.pid, other->member.host) : "another",
                                 place_.told_by));
  }

  void wait_for_all() {
    milliseconds pause{10};
    while (store_->add("present", 0) < place_.size) {
      enter_lobby();
      if (store_->check({"refused"})) require_same_size();
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, 2 * kRetryPause);
      if (patience_.is_over()) {
        require_same_size();
        throw LostRankError(fmt::format("{} did not come to {}, port {}, within {} s; {} of {} are there", missing(), place_.address,
                                        place_.port, patience_.waited().count(), store_->add("present", 0), place_.size));
      }
      if (!patience_.is_noticeable()) continue;
      require_same_size();
      log_info("waiting for {} of {}, for {} s", missing(), place_.size, patience_.waited().count());
    }
    require_same_size();
    enter_lobby();
  }

  /// Tells the others that the start is refused. Rank 0 keeps its store until they have read why there, for two seconds at most.
  void let_others_read() {
    try {
      store_->set("refused", "yes");
      store_->add("left", 1);
      const Clock::time_point end = Clock::now() + seconds(2);
      while (owns_store(place_) && store_->add("left", 0) < store_->add("present", 0) && Clock::now() < end)
        std::this_thread::sleep_for(milliseconds(10));
    } catch (const c10::Error&) {  // the store is gone, and with it who would read
    }
  }

  static std::string key_of(int rank) { return fmt::format("rank/{}", rank); }

  std::optional<Card> card_of_rank(int rank) const {
    return store_->check({key_of(rank)}) ? std::optional(card_of(store_->get_to_str(key_of(rank)))) : std::nullopt;
  }

  /// Returns "rank 3", or "ranks 3, 5, 6", at most ten of them.
  std::string missing() const {
    constexpr int kMostNamed = 10;
    int count = 0;
    std::string list;
    for (int rank = 0; rank < place_.size; ++rank) {
      if (store_->check({key_of(rank)})) continue;
      if (++count <= kMostNamed) list += fmt::format("{}{}", count > 1 ? ", " : "", rank);
    }
    return fmt::format("{} {}{}", count == 1 ? "rank" : "ranks", list,
                       count > kMostNamed ? fmt::format(" and {} more", count - kMostNamed) : "");
  }

  void require_same_size() const {
    for (int rank = 0; rank < place_.size; ++rank) {
      const std::optional<Card> card = card_of_rank(rank);
      if (card && card->size != place_.size)
        throw UsageError(
            fmt::format("this process, rank {} of {}, is one of {} ranks, and rank {} (pid {} of {}) is one of {}: all need the "
                        "same number ({})",
                        place_.rank, host_name(), place_.size, rank, card->member.pid, card->member.host, card->size, place_.told_by));
    }
  }

  Rendezvous result() const {
    std::vector<Card> cards;
    cards.reserve(static_cast<size_t>(place_.size));
    for (int rank = 0; rank < place_.size; ++rank) cards.push_back(card_of(store_->get_to_str(key_of(rank))));
    require_places(cards);
    Rendezvous all = {.store = store_, .members = {}, .start_id = store_->get_to_str("start")};
    for (const Card& card : cards) {
      all.members.push_back(card.member);
      all.members.back().address = address_for_others(card, cards);
    }
    return all;
  }

  /// Throws UsageError where two ranks have the same place on one machine: each would take the same device, and all of the cores.
  static void require_places(const std::vector<Card>& cards) {
    std::map<std::pair<std::string, int>, size_t> taken;
    for (size_t rank = 0; rank < cards.size(); ++rank) {
      const auto [first, is_new] = taken.emplace(std::pair(cards[rank].machine, cards[rank].local_rank), rank);
      if (!is_new)
        throw UsageError(
            fmt::format("ranks {} and {} are on one machine ({}) and both the process {} there: set LOCAL_RANK and "
                        "LOCAL_WORLD_SIZE, the place among the processes of the machine and their number",
                        first->second, rank, cards[rank].member.host, cards[rank].local_rank));
    }
  }

  /// Returns the address by which a rank reaches rank 0. On rank 0's own machine that may be 127.0.0.1, or 127.0.1.1 by its name: then what
  /// the others reach it by.
  static std::string address_for_others(const Card& one, const std::vector<Card>& cards) {
    if (!one.address.empty() && !is_loopback(one.address)) return one.address;
    for (const Card& card : cards)
      if (!card.address.empty() && !is_loopback(card.address)) return card.destination;
    return one.address.empty() ? "127.0.0.1" : one.address;
  }

  const RankPlace& place_;
  Patience& patience_;
  Lobby& lobby_;
  StorePtr store_;
  Member own_;
  std::string destination_;           // the numeric address of the store
  bool is_at_all_addresses_ = false;  // the store of this process
};

}  // namespace

std::string plain_message(const std::exception& error) {
  const auto* const of_torch = dynamic_cast<const c10::Error*>(&error);
  std::string text = of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
  text = text.substr(0, text.find('\n'));
  if (text.starts_with('[')) text.erase(0, text.find("] ") == std::string::npos ? 0 : text.find("] ") + 2);  // file and line
  while (text.ends_with(' ') || text.ends_with('.')) text.pop_back();
  return text;
}

Rendezvous meet(const RankPlace& place, milliseconds timeout, Lobby& lobby) {
  Patience patience(timeout);
  for (;;) {
    try {
      return Meeting(place, patience, lobby).run();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {  // of the store: rank 0 of a former start ends, for one
      if (owns_store(place) || patience.is_over() || lobby.is_entered())
        throw LostRankError(fmt::format("the ranks do not meet at {}, port {}: {}", place.address, place.port, plain_message(error)));
      std::this_thread::sleep_for(kRetryPause);
    }
  }
}

}  // namespace lacuna
