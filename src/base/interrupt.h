#pragma once

namespace lacuna {

/// Takes over SIGINT and SIGTERM: the first one is only remembered, so that work can end in order (a checkpoint is written); the second one
/// ends the process at once. SIGPIPE is ignored: a closed output is an error of the write.
void handle_interrupts();

/// 0, or SIGINT or SIGTERM if it has come. The exit code is then 128 + it.
int interrupt_signal();

}  // namespace lacuna
