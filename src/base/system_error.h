#pragma once

#include <cerrno>
#include <string>

/// Calls of the operating system that fail: which are made again, and whose fault the others are.
namespace lacuna {

/// Makes a system call (a function that returns -1 and sets errno if it fails) again for as long as signals interrupt it.
template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// Returns true where an error of the system (errno) is about what the user named: missing, a folder, not permitted, a loop of links, too
/// long a name. All else is the machine's: a broken or full disk, too many open files, no memory.
bool is_users_mistake(int error);

/// Throws DataError for a user's mistake, else MachineError. The message is `before`, the system's reason, `after`.
[[noreturn]] void fail_by(int error, const std::string& before, const std::string& after = "");

}  // namespace lacuna
