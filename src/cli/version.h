#pragma once

#include <string>

namespace lacuna {

/// "lacuna 0.1.0 (git hash)"; without the parentheses if it was built outside of a checkout.
std::string version_text();
/// Version, build, LibTorch, device, instruction set, threads: one fact a line.
std::string build_text();

}  // namespace lacuna
