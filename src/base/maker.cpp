#include "base/maker.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <ctime>

#include "base/content_hash.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMachineDigits = 16;

/// Where a process number means what it means here: this host, and of its containers this one.
const std::string& this_machine() {
  static const std::string machine = [] {
    utsname host = {};
    uname(&host);
    std::error_code no_proc;
    return hash_of(std::string(host.nodename) + " " + fs::read_symlink("/proc/self/ns/pid", no_proc).string()).substr(0, kMachineDigits);
  }();
  return machine;
}

/// Whether it was neither written nor renamed for so long.
bool has_rested(const fs::path& place, std::chrono::seconds time) {
  struct stat status = {};
  return lstat(place.c_str(), &status) == 0 && std::time(nullptr) - status.st_ctime >= time.count();
}

}  // namespace

Maker::Maker() : Maker(this_machine(), getpid()) {}

std::optional<Maker> Maker::named(std::string_view text) {
  const std::string_view machine = text.substr(0, kMachineDigits);
  if (text.size() <= kMachineDigits || text[kMachineDigits] != '.') return {};
  if (machine.find_first_not_of("0123456789abcdef") != std::string_view::npos) return {};
  const std::string_view digits = text.substr(kMachineDigits + 1);
  pid_t process = 0;
  const char* const end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, process).ptr != end || process <= 0) return {};
  return Maker(machine, process);
}

std::string Maker::name() const {
  return machine_ + "." + std::to_string(process_);
}

bool Maker::is_this_process() const {
  return process_ == getpid() && machine_ == this_machine();
}

bool Maker::is_gone(const fs::path& made, std::chrono::seconds patience) const {
  if (machine_ != this_machine()) return has_rested(made, patience);
  return kill(process_, 0) != 0 && errno == ESRCH;
}

}  // namespace lacuna
