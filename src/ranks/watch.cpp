#include "ranks/watch.h"

#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "base/log.h"
#include "ranks/link.h"
#include "ranks/stage.h"

namespace lacuna {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kBeat{1000};
constexpr milliseconds kNotesArrive{
    500};                             // between a loss and the end: for notes, and for the lost process to be missed by its launcher first
constexpr seconds kReasonArrives{3};  // after a message has failed: for rank 0 to say why
constexpr seconds kIntroduction{10};  // for a new connection to say who it is
constexpr seconds kLastWork{30};      // for what rank 0 has begun to write
constexpr size_t kMostStrangers = 64, kLongestHello = 128, kLongestLine = 16384;
constexpr const char* kWayOn = "The same command goes on from the newest checkpoint";

/// What is known of another rank.
struct Heard {
  std::optional<Link> link = {};  // at rank 0 to each, elsewhere to rank 0
  Clock::time_point last = Clock::now();
  int64_t step = -1;
  std::string phase = "starting", note = {};
  bool has_left = false;  // with a goodbye
};

/// A connection that has not said who it is.
struct Stranger {
  Link link;
  Clock::time_point since = Clock::now();
};

/// Why this process ends soon.
struct Loss {
  int rank = -1;     // -1 = not known
  std::string text;  // empty: to be made of what is known of the rank
  Clock::time_point ends_at;
};

/// Splits "word rest".
std::pair<std::string, std::string> first_word(const std::string& line) {
  const size_t space = line.find(' ');
  return {line.substr(0, space), space == std::string::npos ? "" : line.substr(space + 1)};
}

int64_t number_of(const std::string& word) {
  int64_t number = -1;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

std::string where(int64_t step, const std::string& phase) {
  return step < 0 ? phase : fmt::format("step {}, {}", step, phase);
}

}  // namespace

class Watch::Thread {
 public:
  Thread(Group& group, WatchOptions options)
      : group_(group),
        options_(std::move(options)),
        timeout_(options_.timeout),
        wake_up_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        heard_(static_cast<size_t>(group.size())) {
    if (!wake_up_) throw MachineError("the ranks cannot be watched: no descriptor is left");
    connect();
    thread_ = std::thread([this] { run(); });
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  ~Thread() {
    order([this] { is_leaving_ = true; });
    thread_.join();
  }

  void set_timeout(milliseconds timeout) { timeout_ = timeout; }

  void at(int64_t step, const char* phase) {
    phase_ = phase;
    step_ = step;
  }

  void say_why_we_leave(const std::string& message) {
    order([&] { own_note_ = message; });
    std::unique_lock lock(mutex_);
    has_stopped_.wait_for(lock, seconds(2), [this] { return is_stopped_; });
  }

  [[noreturn]] void end(const LostRankError& error) {
    order([&] { suspicion_ = error.what(); });
    for (;;) std::this_thread::sleep_for(seconds(1));  // the thread ends the process
  }

 private:
  /// Connects the ranks. Each that fails, fails all.
  void connect() {
    const std::string port = from_first(group_, [&] {
      listening_ = listen_at(group_.members().at(0).address, 0);
      return std::to_string(port_of(listening_));
    });
    on_all_ranks(group_, [&] {
      if (!group_.is_first()) connect_to_first(static_cast<uint16_t>(number_of(port)));
    });
  }

  void connect_to_first(uint16_t port) {
    const std::string address = group_.members().at(0).address;
    std::string problem;
    Socket socket = connect_to(address, port, seconds(30), problem);
    if (!socket) throw LostRankError(fmt::format("{} does not answer at {}, port {}: {}", group_.name_of(0), address, port, problem));
    heard_[0].link.emplace(std::move(socket));
    heard_[0].link->send(fmt::format("hello {} {}", group_.start_id(), group_.rank()));
  }

  /// Makes a change that the thread sees at once.
  template <class Change>
  void order(const Change& change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_up_.get(), &one, sizeof one);
  }

  void run() {
    Clock::time_point next_beat = Clock::now(), last_round = next_beat;
    for (;;) {
      wait_until(next_beat);
      const Clock::time_point now = Clock::now();
      forgive_pause(now - last_round);
      last_round = now;
      accept_strangers();
      read_all();
      if (take_orders()) break;
      if (now >= next_beat) {
        send_beats();
        next_beat = now + beat();
      }
      find_silent(now);
      if (loss_ && now >= loss_->ends_at) end_process();
    }
    send_rest();
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    has_stopped_.notify_all();
  }

  /// Returns how often this rank is heard: every second, or more often where that is a good part of the time that silence may last.
  milliseconds beat() const { return std::min(kBeat, timeout_.load() / 4); }

  void wait_until(Clock::time_point next_beat) {
    std::vector<pollfd> files = {{.fd = wake_up_.get(), .events = POLLIN, .revents = 0}};
    if (listening_) files.push_back({.fd = listening_.get(), .events = POLLIN, .revents = 0});
    for (const Stranger& stranger : strangers_) files.push_back({.fd = stranger.link.descriptor(), .events = POLLIN, .revents = 0});
    for (const Heard& other : heard_)
      if (other.link) files.push_back({.fd = other.link->descriptor(), .events = other.link->events(), .revents = 0});
    const Clock::time_point end = loss_ ? std::min(next_beat, loss_->ends_at) : next_beat;
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now()) + milliseconds(1);
    poll(files.data(), files.size(), static_cast<int>(std::max(milliseconds(0), left).count()));
    uint64_t ignored = 0;
    [[maybe_unused]] const ssize_t count = read(wake_up_.get(), &ignored, sizeof ignored);
  }

  /// A process that was stopped must not take its own pause for the silence of others.
  void forgive_pause(Clock::duration round) {
    if (round < 3 * beat()) return;
    for (Heard& other : heard_) other.last += round;
  }

  void accept_strangers() {
    while (listening_) {
      Socket socket(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) break;
      if (strangers_.size() < kMostStrangers) strangers_.push_back({.link = Link(std::move(socket))});
    }
    for (Stranger& stranger : strangers_) introduce(stranger);
    std::erase_if(strangers_, [](const Stranger& stranger) { return !stranger.link.is_open(); });
  }

  /// Makes a stranger the rank that it says it is, if it knows the start's id.
  void introduce(Stranger& stranger) {
    std::vector<std::string> lines;
    const bool is_alive = stranger.link.read_lines(lines, kLongestHello);
    if (lines.empty()) {
      if (!is_alive || Clock::now() - stranger.since > kIntroduction) stranger.link.close();
      return;
    }
    const std::string greeting = fmt::format("hello {} ", group_.start_id());
    const int64_t rank = lines.front().starts_with(greeting) ? number_of(lines.front().substr(greeting.size())) : -1;
    const bool is_known = rank > 0 && rank < group_.size() && !heard_[static_cast<size_t>(rank)].link;
    if (!is_known) return stranger.link.close();
    Heard& other = heard_[static_cast<size_t>(rank)];
    other.last = Clock::now();
    other.link.emplace(std::move(stranger.link));
    for (size_t i = 1; i < lines.size(); ++i) obey(static_cast<int>(rank), lines[i]);
    if (!is_alive) note_end_of(static_cast<int>(rank));
  }

  void read_all() {
    for (int rank = 0; rank < group_.size(); ++rank) {
      Heard& other = heard_[static_cast<size_t>(rank)];
      if (!other.link || !other.link->is_open()) continue;
      other.link->flush();
      std::vector<std::string> lines;
      const bool is_alive = other.link->read_lines(lines, kLongestLine);
      for (const std::string& line : lines) obey(rank, line);
      if (!is_alive) note_end_of(rank);
    }
  }

  void note_end_of(int rank) {
    Heard& other = heard_[static_cast<size_t>(rank)];
    other.link.reset();
    if (!other.has_left) lose(rank, "", kNotesArrive);
    other.has_left = true;
  }

  /// Does what a line of another rank says.
  void obey(int rank, const std::string& line) {
    Heard& other = heard_[static_cast<size_t>(rank)];
    other.last = Clock::now();
    const auto [word, rest] = first_word(line);
    if (word == "beat") {
      const auto [step, phase] = first_word(rest);
      other.step = number_of(step);
      other.phase = phase;
    } else if (word == "note") {  // it fails by itself
      other.note = rest;
      lose(rank, "", kNotesArrive);
    } else if (word == "leave") {  // because of another, that rank 0 may not miss
      other.has_left = true;
      lose(-1, rest, kNotesArrive);
    } else if (word == "lost") {  // rank 0 knows who it is
      const auto [lost, text] = first_word(rest);
      loss_ = {.rank = static_cast<int>(number_of(lost)), .text = text, .ends_at = Clock::now()};
    } else if (word == "bye") {
      other.has_left = true;
    }
  }

  /// The first loss is the cause; one whose rank is known goes before one that is only suspected.
  void lose(int rank, const std::string& text, milliseconds until_end) {
    const Clock::time_point ends_at = Clock::now() + until_end;
    if (loss_ && (loss_->rank >= 0 || rank < 0)) return;
    loss_ = {.rank = rank, .text = text, .ends_at = loss_ ? std::min(loss_->ends_at, ends_at) : ends_at};
  }

  /// Does what this process's other threads want; true if it leaves.
  bool take_orders() {
    const std::lock_guard lock(mutex_);
    if (own_note_) {
      const std::string place = fmt::format("({}): {}", where(step_, phase_.load()), *own_note_);
      say(group_.is_first() ? fmt::format("lost 0 {} has failed {}. {}", group_.name_of(0), place, kWayOn) : "note " + place);
      return true;
    }
    if (is_leaving_) {
      say("bye");
      return true;
    }
    if (suspicion_) lose(-1, *std::exchange(suspicion_, {}), kReasonArrives);
    return false;
  }

  /// Sends a line to all with whom there is a connection.
  void say(const std::string& line) {
    for (Heard& other : heard_)
      if (other.link) other.link->send(line);
  }

  void send_beats() {
    const std::string line = fmt::format("beat {} {}", step_.load(), phase_.load());
    for (Heard& other : heard_)
      if (other.link && other.link->has_sent_all()) other.link->send(line);
  }

  void find_silent(Clock::time_point now) {
    for (int rank = 0; rank < group_.size(); ++rank) {
      const Heard& other = heard_[static_cast<size_t>(rank)];
      const bool is_watched = rank != group_.rank() && (group_.is_first() || rank == 0) && !other.has_left;
      if (is_watched && now - other.last > timeout_.load()) lose(rank, "", milliseconds(0));
    }
  }

  /// Waits until what was said has arrived, but not long.
  void send_rest() {
    const Clock::time_point end = Clock::now() + seconds(1);
    const auto has_rest = [](const Heard& other) { return other.link && !other.link->has_delivered_all(); };
    while (std::ranges::any_of(heard_, has_rest) && Clock::now() < end) {
      for (Heard& other : heard_)
        if (other.link) other.link->flush();
      std::this_thread::sleep_for(milliseconds(10));
    }
  }

  std::string text_of_loss() const {
    if (loss_->rank < 0) return loss_->text;
    const Heard& lost = heard_[static_cast<size_t>(loss_->rank)];
    const std::string name = group_.name_of(loss_->rank);
    if (!lost.note.empty()) return fmt::format("{} has failed {}. {}", name, lost.note, kWayOn);
    const double age = std::chrono::duration<double>(Clock::now() - lost.last).count();
    return fmt::format("{} {}: last heard of {:.1f} s ago, {}. {}", name, lost.link ? "does not answer" : "is gone", age,
                       where(lost.step, lost.phase), kWayOn);
  }

  /// Returns true on the first rank of each machine that is left.
  bool is_teller() const {
    const std::vector<Member>& members = group_.members();
    const auto own = static_cast<size_t>(group_.rank());
    for (size_t rank = 0; rank < own; ++rank)
      if (static_cast<int>(rank) != loss_->rank && members[rank].host == members[own].host) return false;
    return true;
  }

  [[noreturn]] void end_process() {
    const std::string text = loss_->text.empty() ? text_of_loss() : loss_->text;
    say(group_.is_first() ? fmt::format("lost {} {}", loss_->rank, text) : "leave " + text);
    if (is_teller()) write_log_line(LogLevel::kError, text);
    send_rest();
    if (options_.before_end) {
      std::packaged_task<void()> work(options_.before_end);
      const std::future<void> done = work.get_future();
      std::thread(std::move(work)).detach();
      done.wait_for(kLastWork);
    }
    write_torch_error_file(text);
    std::_Exit(kLostRankCode);
  }

  Group& group_;
  WatchOptions options_;
  std::atomic<milliseconds> timeout_;
  Socket wake_up_;
  Socket listening_;  // at rank 0
  std::vector<Stranger> strangers_;
  std::vector<Heard> heard_;  // by rank
  std::optional<Loss> loss_;
  std::atomic<int64_t> step_ = -1;
  std::atomic<const char*> phase_ = "starting";

  std::mutex mutex_;  // of what follows
  std::condition_variable has_stopped_;
  bool is_leaving_ = false, is_stopped_ = false;
  std::optional<std::string> own_note_, suspicion_;

  std::thread thread_;
};

Watch::Watch(Group& group, WatchOptions options)
    : thread_(group.is_alone() ? nullptr : std::make_unique<Thread>(group, std::move(options))) {}

Watch::~Watch() = default;

void Watch::set_timeout(milliseconds timeout) {
  if (thread_) thread_->set_timeout(timeout);
}

void Watch::at(int64_t step, const char* phase) {
  if (thread_) thread_->at(step, phase);
}

void Watch::say_why_we_leave(const std::string& message) {
  if (thread_) thread_->say_why_we_leave(message);
}

void Watch::end(const LostRankError& error) {
  if (!thread_) throw error;
  thread_->end(error);
}

void write_torch_error_file(const std::string& message) {
  const char* const path = std::getenv("TORCHELASTIC_ERROR_FILE");
  if (path == nullptr || *path == 0) return;
  std::ofstream(path) << json_text({{"message", message}, {"timestamp", std::time(nullptr)}}) << "\n";
}

}  // namespace lacuna
