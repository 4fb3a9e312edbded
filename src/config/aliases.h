#pragma once

#include "config/config_node.h"

namespace lacuna {

/// Renames the keys of other toolkits (Marian, OpenNMT, Eole, Joey NMT, fairseq, Sockeye), kebab and snake case alike, to Lacuna's, with
/// one warning each. Throws ConfigError if a key and another spelling of it are both there, or where a key of theirs means something else.
void rename_known_aliases(ConfigNode& root);

/// Replaces settings of older versions that no longer exist, in a configuration that a checkpoint or run folder keeps: translating in
/// bf16x3 becomes fp32, with a warning. In a user's own configuration they are errors (rename_known_aliases).
void replace_removed_settings(ConfigNode& root);

}  // namespace lacuna
