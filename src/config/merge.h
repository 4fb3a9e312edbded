#pragma once

#include <string>

#include "config/config_node.h"

namespace lacuna {

/// Merges `over` onto `under`: maps merge key by key, everything else is replaced; an empty section changes nothing. `path` is the dotted
/// key of both, empty for whole trees.
///
/// `model.preset` replaces the sizes in `under`. Within `model.attention` a map that names a type replaces the choice in `under`, but
/// merges with options that have no type; a map of options alone changes the choice in `under`, or all of its choices by site or layer.
ConfigNode merged(const ConfigNode& under, const ConfigNode& over, const std::string& path = "");

}  // namespace lacuna
