#pragma once

#include <string>
#include <vector>

#include "config/config_node.h"

namespace lacuna {

/// A key whose value differs between two configurations. Keys of list items have their number: `data.train.0.src`.
struct ConfigDifference {
  std::string key, first, second;  ///< the key and both values; a value is empty where the key is missing
  /// Returns a text such as "train.lr: 0.001 and 0.002".
  std::string text() const;
};

/// Returns all differences between two configurations, sorted by key.
std::vector<ConfigDifference> differences(const ConfigNode& first, const ConfigNode& second);

}  // namespace lacuna
