#pragma once

#include "config/options.h"
#include "config/rules.h"

namespace lacuna {

/// A configuration as the user gave it: its options, and the place (file and line) of each key, for messages.
struct Configuration {
  Options options;
  Rules rules;
};

}  // namespace lacuna
