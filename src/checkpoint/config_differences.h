#pragma once

#include <string>
#include <vector>

#include "config/config_node.h"

namespace lacuna {

/// A key whose value differs between two configurations. Keys of list items have their number: `data.train.0.src`.
struct ConfigDifference {
  std::string key, first, second;  ///< empty value: the key is not there
  /// "train.lr: 0.001 and 0.002"
  std::string text() const;
};

/// All of them, by key.
std::vector<ConfigDifference> differences(const ConfigNode& first, const ConfigNode& second);

}  // namespace lacuna
