#include <spdlog/fmt/fmt.h>

#include "base/line_reader.h"
#include "base/spelling.h"
#include "cli/shared_flags.h"

namespace lacuna::flags {

CLI::Option* add_on_error(CLI::App& app, OnBadLine& on_error, const std::string& fate) {
  const auto take = [&on_error](const std::string& word) { on_error = word == "skip" ? OnBadLine::kSkip : OnBadLine::kStop; };
  return app
      .add_option_function<std::string>(
          "--on-error", take,
          "A line that cannot be taken (not UTF-8, longer than 1 MiB, ...) ends the work, or is passed over: " + fate +
              ", and the exit code is 1 in the end")
      ->default_str("stop")
      ->check(CLI::IsMember({"stop", "skip"}));
}

void require_none_passed_over(int64_t bad_lines, int64_t lines) {
  if (bad_lines > 0)
    throw PassedOverError(
        fmt::format("{} of {} could not be taken and {} passed over", bad_lines, counted(lines, "line"), bad_lines == 1 ? "was" : "were"));
}

}  // namespace lacuna::flags
