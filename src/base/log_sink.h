#pragma once

#include <functional>
#include <string>

#include "base/log.h"

namespace lacuna {

/// Takes a line of the log, printable; called by any thread.
using LogSink = std::function<void(LogLevel level, const std::string& line)>;

/// Gives every line of the log from now on to `sink` alone, whatever its level: for a program that has a log of its own. To be called
/// before there are other threads.
void send_log_to(LogSink sink);

}  // namespace lacuna
