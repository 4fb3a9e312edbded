#pragma once

#include <string>

#include "config/config_node.h"

namespace lacuna {

/// Throws ConfigError (the place, in later lines of `text` their own) for bytes that are not UTF-8.
void require_utf8(const std::string& text, const Place& place);

/// Reads YAML text. Every node remembers file and line. Throws ConfigError (file:line) for what is not YAML or UTF-8, for a key that comes
/// twice (with both lines) and for trees deeper than 64 or larger than 100,000 nodes.
ConfigNode parse_yaml(const std::string& text, const std::string& file);

/// One value of the command line; `place` has no lines.
ConfigNode parse_yaml_value(const std::string& text, const std::string& place);

/// The YAML of a file of at most 16 MB.
ConfigNode read_yaml_file(const std::string& path);

}  // namespace lacuna
