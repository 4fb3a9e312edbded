#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace lacuna {

/// The process that makes a file or folder, as "MACHINE.PROCESS" in the temporary name of what is not whole yet: so it is known what a
/// killed one has left.
class Maker {
 public:
  /// This process.
  Maker();
  /// That of a name; nothing where the text names none.
  static std::optional<Maker> named(std::string_view text);

  std::string name() const;
  bool is_this_process() const;
  /// Whether it is no more. Of another host or container that cannot be known here: it counts as gone when nobody has touched what it
  /// `made` for as long as `patience`.
  bool is_gone(const std::filesystem::path& made, std::chrono::seconds patience = std::chrono::hours(24)) const;

 private:
  Maker(std::string_view machine, pid_t process) : machine_(machine), process_(process) {}

  std::string machine_;  // 16 hexadecimal digits
  pid_t process_;
};

}  // namespace lacuna
