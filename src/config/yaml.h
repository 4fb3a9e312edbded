#pragma once

#include <string>

#include "config/config_node.h"

namespace lacuna {

/// Throws ConfigError, with the line, for bytes that are not UTF-8; `place` is that of the first line of `text`.
void require_utf8(const std::string& text, const Place& place);

/// Reads YAML text. Every node remembers file and line. Throws ConfigError (file:line) for what is not YAML or UTF-8, for control
/// characters and NULs, for a key that comes twice (with both lines) and for trees deeper than 64 or larger than 100,000 nodes.
ConfigNode parse_yaml(const std::string& text, const std::string& file);

/// Parses one value of the command line; `place` has no line numbers.
ConfigNode parse_yaml_value(const std::string& text, const std::string& place);

/// Reads a YAML file of at most 16 MB.
ConfigNode read_yaml_file(const std::string& path);

}  // namespace lacuna
