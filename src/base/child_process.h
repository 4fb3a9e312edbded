#pragma once

#include <functional>
#include <string>

namespace lacuna {

/// The result of `work`, which runs in a child process: all its memory is freed when it ends, and a crash there is an error here. A
/// DataError thrown in the child is thrown here too, any other exception as a MachineError. Throws MachineError if the child dies, and
/// Interrupted if SIGINT, SIGTERM or SIGHUP arrives meanwhile. `what` names the work in error messages ("training ...").
std::string run_in_child(const std::function<std::string()>& work, const std::string& what);

}  // namespace lacuna
