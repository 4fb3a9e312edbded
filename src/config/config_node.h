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

/// One value of a configuration tree: what YAML can say, and where it said it. Files, overrides and defaults all become one of these before
/// any option is read from it. Maps keep the order of their keys; a key is there once.
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

  const std::string& text() const { return text_; }                                            ///< of a scalar, unquoted
  const std::vector<ConfigNode>& items() const { return items_; }                              ///< of a list
  const std::vector<std::pair<std::string, ConfigNode>>& entries() const { return entries_; }  ///< of a map
  const ConfigNode* find(const std::string& key) const;                                        ///< null if the map has no such key
  void set(const std::string& key, ConfigNode value);  ///< adds or replaces; a null node becomes a map
  void erase(const std::string& key);

  const Place& place() const { return place_; }
  const std::string& path() const { return path_; }  ///< dotted key from the root: `model.attention.cross.k`
  void set_path(const std::string& path);            ///< of this node and, extended, of everything below

  /// ConfigError "file:line: key is "value"; <what>", with `what` saying what was expected and what to do.
  [[noreturn]] void fail(const std::string& what) const;

  /// The tree as YAML text.
  std::string to_yaml() const;
  /// The same in one line, without a line end: {type: topk, k: 8}.
  std::string to_flow_yaml() const;

 private:
  Kind kind_ = Kind::kNull;
  std::string text_;
  std::vector<ConfigNode> items_;
  std::vector<std::pair<std::string, ConfigNode>> entries_;
  Place place_;
  std::string path_;
};

}  // namespace lacuna
