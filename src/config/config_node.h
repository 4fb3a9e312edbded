#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace lacuna {

/// Where a configuration value was written: a file's line, or a command-line override (then `file` is "command line" and line 0).
struct Place {
  std::string file;
  int line = 0;
  std::string text() const { return line > 0 ? file + ":" + std::to_string(line) : file; }
};

/// One value of a configuration tree: a YAML value and its place. Files, overrides and defaults become such trees before options are read.
/// Maps keep the order of their keys, which are unique.
class ConfigNode {
 public:
  enum class Kind { kNull, kScalar, kList, kMap };

  ConfigNode() = default;
  static ConfigNode null(Place place) {
    ConfigNode node;
    node.place_ = std::move(place);
    return node;
  }
  static ConfigNode scalar(std::string text, Place place = {}) {
    ConfigNode node;
    node.kind_ = Kind::kScalar;
    node.text_ = std::move(text);
    node.place_ = std::move(place);
    return node;
  }
  static ConfigNode list(std::vector<ConfigNode> items, Place place = {});
  static ConfigNode map(std::vector<std::pair<std::string, ConfigNode>> entries, Place place = {});

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_scalar() const { return kind_ == Kind::kScalar; }
  bool is_list() const { return kind_ == Kind::kList; }
  bool is_map() const { return kind_ == Kind::kMap; }

  const std::string& text() const { return text_; }                                            ///< the text of a scalar, unquoted
  const std::vector<ConfigNode>& items() const { return items_; }                              ///< the items of a list
  const std::vector<std::pair<std::string, ConfigNode>>& entries() const { return entries_; }  ///< the entries of a map
  const ConfigNode* find(const std::string& key) const;                                        ///< null if the map has no such key
  void set(const std::string& key, ConfigNode value);  ///< adds or replaces; a null node becomes a map
  void erase(const std::string& key);

  const Place& place() const { return place_; }
  const std::string& path() const { return path_; }  ///< dotted key from the root: `model.attention.cross.k`
  void set_path(const std::string& path);            ///< sets the path of this node and those of all nodes below

  /// Throws ConfigError "file:line: key is "value"; <what>", with `what` saying what was expected and what to do.
  [[noreturn]] void fail(const std::string& what) const;
  /// Throws ConfigError "file:line: unknown key <path>", where only the keys `known` are allowed beside this node, with the nearest of the
  /// keys `meant` and, if they are few, the known ones.
  [[noreturn]] void fail_as_unknown(const std::vector<std::string>& known, const std::vector<std::string>& meant) const;
  [[noreturn]] void fail_as_unknown(const std::vector<std::string>& known) const { fail_as_unknown(known, known); }

  /// Returns the tree as YAML text.
  std::string to_yaml() const;
  /// Returns the tree on one line: {type: topk, k: 8}.
  std::string to_line() const;

 private:
  Kind kind_ = Kind::kNull;
  std::string text_;
  std::vector<ConfigNode> items_;
  std::vector<std::pair<std::string, ConfigNode>> entries_;
  Place place_;
  std::string path_;
};

/// A key whose value differs between two configurations. Keys of list items have their number: `data.train.0.src`.
struct ConfigDifference {
  std::string key, first, second;  ///< the key and both values; a value is empty where the key is missing
  /// Returns a text such as "train.lr: 0.001 and 0.002".
  std::string text() const;
};

/// Returns all differences between two configurations, sorted by key.
std::vector<ConfigDifference> differences(const ConfigNode& first, const ConfigNode& second);

}  // namespace lacuna
