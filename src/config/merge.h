#pragma once

#include <string>

#include "config/config_node.h"

namespace lacuna {

/// `over` laid over `under`: maps merge key by key, everything else replaces; a section with nothing in it changes nothing. `path` is the
/// dotted key of both, empty for whole trees.
///
/// `model.preset` takes the place of the sizes below it. Under `model.attention` a map that names a type replaces the choice below it,
/// but joins options alone (type and options come in any order); one of options alone changes the choice below it, or each of them where
/// sites or layers have their own.
ConfigNode merged(const ConfigNode& under, const ConfigNode& over, const std::string& path = "");

}  // namespace lacuna
