#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/config_node.h"
#include "config/options.h"

namespace lacuna {

/// Checks rules between options. An error begins with the place of the offending key in the tree that the options come from, if any.
class Rules {
 public:
  Rules() = default;
  explicit Rules(ConfigNode tree) : tree_(std::move(tree)) {}

  /// Throws ConfigError unless `holds`: the place of `keys`, which the rule is about, the message, and where keys in other files stand.
  void require(bool holds, const std::vector<std::string>& keys, const std::string& message) const;

  /// Returns the place of the first of `keys` on the command line, "command line (--key): ", or else of the first that is in a file and not
  /// empty, "file:line: "; empty if none is written. Keys are dotted: `train.lr`, `data.train[0].src`.
  std::string place(const std::vector<std::string>& keys) const;

 private:
  const ConfigNode* written(const std::string& key) const;
  const ConfigNode* first_written(const std::vector<std::string>& keys) const;

  ConfigNode tree_;
};

/// A configuration as the user gave it: its options, and the place (file and line) of each key, for messages.
struct Configuration {
  Options options;
  Rules rules;
};

}  // namespace lacuna
