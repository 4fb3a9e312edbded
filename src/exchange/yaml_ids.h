#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace lacuna {

/// Reads a vocabulary of Marian, a YAML map of pieces to their ids: `"piece": 3`, one a line. It may be far larger than a configuration,
/// and is read in one pass. Throws DataError, naming `name` and the line, for what is no such map, and for an id that comes twice.
std::map<int64_t, std::string> read_yaml_ids(const std::string& text, const std::string& name);

}  // namespace lacuna
