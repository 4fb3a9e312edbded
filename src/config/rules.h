#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/config_node.h"

namespace lacuna {

/// What options must satisfy together. An error begins with the place of what breaks the rule, which the tree that the options were read
/// from knows; without a tree it has none.
class Rules {
 public:
  Rules() = default;
  explicit Rules(ConfigNode tree) : tree_(std::move(tree)) {}

  /// Throws ConfigError unless `holds`: the place of `keys`, which the rule is about, the message, and where those of them stand that are
  /// in another file.
  void require(bool holds, const std::vector<std::string>& keys, const std::string& message) const;

  /// "command line (--key): " of the first of `keys` that is written there, as that is above all files, or else "file:line: " of the first
  /// that is in a file and not empty; nothing if none is written. A key is dotted: `train.lr`, `data.train[0].src`.
  std::string place(const std::vector<std::string>& keys) const;

 private:
  const ConfigNode* written(const std::string& key) const;
  const ConfigNode* first_written(const std::vector<std::string>& keys) const;

  ConfigNode tree_;
};

}  // namespace lacuna
