// A network of N namespaces with faults, for machines whose kernel has no netem: relay PREFIX N DELAY_MS JITTER_MS LOSS MBIT CUT_FILE
//
// Each namespace PREFIX0, PREFIX1, ... which must exist, gets a device tun0 with the address 10.9.0.1, 10.9.0.2, ... A packet crosses after
// DELAY_MS plus up to JITTER_MS, in order, and is lost with the probability LOSS; each side sends at most MBIT (0 = without limit). The
// file CUT_FILE holds the numbers of namespaces whose packets are dropped, and is read anew all the time. Prints "ready", and ends when
// stdin does.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <queue>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Settings {
  std::string prefix;
  size_t number;
  double delay, jitter, loss, bytes_per_second;
  std::string cut_file;
};

struct Packet {
  double due;
  size_t to;
  std::vector<char> bytes;
  bool operator<(const Packet& other) const { return due > other.due; }
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void require(bool succeeds, const std::string& what) {
  if (!succeeds) throw std::runtime_error(what + ": " + std::strerror(errno));
}

/// Makes a tun device in a namespace; its descriptor.
int tun_in(const std::string& space, size_t number) {
  const int home = open("/proc/self/ns/net", O_RDONLY), other = open(("/var/run/netns/" + space).c_str(), O_RDONLY);
  require(other >= 0 && setns(other, CLONE_NEWNET) == 0, space);
  const int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request = {};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strcpy(request.ifr_name, "tun0");
  require(tun >= 0 && ioctl(tun, TUNSETIFF, &request) == 0, "tun0 in " + space);
  require(setns(home, CLONE_NEWNET) == 0, "the first namespace");
  close(home);
  close(other);
  const std::string address = "10.9.0." + std::to_string(number + 1);
  const std::string command =
      "ip -n " + space + " addr add " + address + "/24 dev tun0 && ip -n " + space + " link set tun0 mtu 9000 txqueuelen 4000 up";
  require(std::system(command.c_str()) == 0, command);
  return tun;
}

class Relay {
 public:
  explicit Relay(Settings settings)
      : settings_(std::move(settings)), free_at_(settings_.number), last_due_(settings_.number * settings_.number) {
    for (size_t i = 0; i < settings_.number; ++i)
      files_.push_back({.fd = tun_in(settings_.prefix + std::to_string(i), i), .events = POLLIN, .revents = 0});
    files_.push_back({.fd = STDIN_FILENO, .events = POLLIN, .revents = 0});
  }

  void run() {
    while (files_.back().revents == 0) {
      read_cuts();
      deliver();
      const double wait = waiting_.empty() ? kLook : std::clamp(waiting_.top().due - now(), 0.0, kLook);
      const timespec time = {0, static_cast<long>(wait * 1e9)};
      ppoll(files_.data(), files_.size(), &time, nullptr);
      for (size_t i = 0; i < settings_.number; ++i)
        if (files_[i].revents != 0) take_from(i);
    }
  }

 private:
  static constexpr double kLook = 0.05, kLongestQueue = 0.2, kApart = 1e-9;  // seconds
  static constexpr int kAtOnce = 64;

  void read_cuts() {
    if (now() - cuts_read_at_ < kLook) return;
    cuts_read_at_ = now();
    cut_.clear();
    std::ifstream file(settings_.cut_file);
    for (size_t number = 0; file >> number;) cut_.insert(number);
  }

  void deliver() {
    for (; !waiting_.empty() && waiting_.top().due <= now(); waiting_.pop()) {
      const Packet& packet = waiting_.top();
      if (write(files_[packet.to].fd, packet.bytes.data(), packet.bytes.size()) < 0) continue;  // its queue is full: lost
    }
  }

  void take_from(size_t from) {
    constexpr size_t kHeader = 20, kLastOfDestination = 19;
    char buffer[1 << 16];
    for (int i = 0; i < kAtOnce; ++i) {
      const ssize_t size = read(files_[from].fd, buffer, sizeof buffer);
      if (size <= static_cast<ssize_t>(kHeader)) return;
      const bool is_ipv4 = (buffer[0] >> 4) == 4;
      const auto to = static_cast<size_t>(static_cast<unsigned char>(buffer[kLastOfDestination])) - 1;
      if (is_ipv4 && to < settings_.number) forward(from, to, {buffer, buffer + size});
    }
  }

  void forward(size_t from, size_t to, std::vector<char> bytes) {
    if (cut_.contains(from) || cut_.contains(to) || draw_(random_) < settings_.loss) return;
    double due = now();
    if (settings_.bytes_per_second > 0) {
      free_at_[from] = std::max(free_at_[from], due) + static_cast<double>(bytes.size()) / settings_.bytes_per_second;
      if (free_at_[from] - due > kLongestQueue) return;
      due = free_at_[from];
    }
    double& last = last_due_[from * settings_.number + to];
    last = std::max(last + kApart, due + settings_.delay + settings_.jitter * draw_(random_));
    waiting_.push({last, to, std::move(bytes)});
  }

  Settings settings_;
  std::vector<pollfd> files_;  // of the namespaces, and stdin
  std::vector<double> free_at_, last_due_;
  std::priority_queue<Packet> waiting_;
  std::set<size_t> cut_;
  double cuts_read_at_ = 0;
  std::mt19937 random_{1};
  std::uniform_real_distribution<> draw_{0, 1};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr, "usage: relay PREFIX N DELAY_MS JITTER_MS LOSS MBIT CUT_FILE\n");
    return 2;
  }
  try {
    Relay relay({argv[1], std::stoul(argv[2]), std::stod(argv[3]) / 1e3, std::stod(argv[4]) / 1e3, std::stod(argv[5]),
                 std::stod(argv[6]) * 1e6 / 8, argv[7]});
    std::puts("ready");
    std::fflush(stdout);
    relay.run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "relay: %s\n", error.what());
    return 1;
  }
}
