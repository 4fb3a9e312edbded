#pragma once

#include <string>

#include "config/config_node.h"

namespace lacuna {

/// `over` laid over `under`: maps merge key by key, everything else replaces. `path` is the dotted key of both, empty for whole trees.
///
/// `model.preset` takes the place of the sizes below it. Under `model.attention` a map that names a type replaces the choice below it; one
/// of options alone changes the choice below it, or each of them where sites or layers have their own.
ConfigNode merged(const ConfigNode& under, const ConfigNode& over, const std::string& path = "");

}  // namespace lacuna
