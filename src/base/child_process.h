#pragma once

#include <functional>
#include <string>

namespace lacuna {

/// What `work` gives, worked out in a process of its own, so that all its memory is given back and a crash there is an error here.
/// DataError and MachineError thrown there are thrown here too. Throws MachineError if the child dies, and Interrupted
/// if a signal comes; `what` says what it was doing
/// ("training ...").
std::string run_in_child(const std::function<std::string()>& work, const std::string& what);

}  // namespace lacuna
