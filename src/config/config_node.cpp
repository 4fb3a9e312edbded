#include "config/config_node.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>

#include "base/spelling.h"

namespace lacuna {

ConfigNode ConfigNode::list(std::vector<ConfigNode> items, Place place) {
  ConfigNode node;
  node.kind_ = Kind::kList;
  node.items_ = std::move(items);
  node.place_ = std::move(place);
  return node;
}

ConfigNode ConfigNode::map(std::vector<std::pair<std::string, ConfigNode>> entries, Place place) {
  ConfigNode node;
  node.kind_ = Kind::kMap;
  node.entries_ = std::move(entries);
  node.place_ = std::move(place);
  return node;
}

const ConfigNode* ConfigNode::find(const std::string& key) const {
  for (const auto& [name, value] : entries_)
    if (name == key) return &value;
  return nullptr;
}

void ConfigNode::set(const std::string& key, ConfigNode value) {
  if (is_null()) kind_ = Kind::kMap;
  for (auto& [name, old] : entries_) {
    if (name != key) continue;
    old = std::move(value);
    return;
  }
  entries_.emplace_back(key, std::move(value));
}

void ConfigNode::erase(const std::string& key) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.first == key; });
}

void ConfigNode::set_path(const std::string& path) {
  path_ = path;
  for (auto& [name, value] : entries_) value.set_path(path.empty() ? name : path + "." + name);
  for (size_t i = 0; i < items_.size(); ++i) items_[i].set_path(path + "[" + std::to_string(i) + "]");
}

void ConfigNode::fail(const std::string& what) const {
  const std::string value = is_scalar() ? "\"" + text_ + "\"" : is_list() ? "a list" : is_map() ? "a map" : "empty";
  const std::string where = place_.text().empty() ? "" : place_.text() + ": ";
  throw ConfigError(where + (path_.empty() ? "the configuration" : path_) + " is " + value + "; " + what);
}

void ConfigNode::fail_as_unknown(const std::vector<std::string>& known, const std::vector<std::string>& meant) const {
  constexpr size_t kFewKeys = 8;
  const size_t key = path_.rfind('.') + 1;  // npos + 1 is 0
  const std::string nearest = nearest_word(path_.substr(key), meant);
  std::string text = place_.text() + (place_.text().empty() ? "" : ": ") + "unknown key " + path_;
  if (!nearest.empty()) text += "; did you mean " + path_.substr(0, key) + nearest + "?";
  if (known.empty())
    text += "; no options are known here";
  else if (known.size() <= kFewKeys)
    text += (nearest.empty() ? "; known here: " : " Known here: ") + join(known);
  else
    text += " (lacuna train --help-options lists all keys)";
  throw ConfigError(text);
}

namespace {

/// Writes a text so that it is read as the same: yaml-cpp by itself puts neither an empty one nor a carriage return in quotes.
void emit(YAML::Emitter& out, const std::string& text) {
  const bool is_misread_plain = text.empty() || text.find('\r') != std::string::npos;
  if (is_misread_plain) out << YAML::DoubleQuoted;
  out << text;
}

void emit(YAML::Emitter& out, const ConfigNode& node) {
  switch (node.kind()) {
    case ConfigNode::Kind::kNull:
      out << YAML::Null;
      break;
    case ConfigNode::Kind::kScalar:
      emit(out, node.text());
      break;
    case ConfigNode::Kind::kList:
      out << YAML::BeginSeq;
      for (const ConfigNode& item : node.items()) emit(out, item);
      out << YAML::EndSeq;
      break;
    case ConfigNode::Kind::kMap:
      out << YAML::BeginMap;
      for (const auto& [key, value] : node.entries()) {
        out << YAML::Key;
        emit(out, key);
        out << YAML::Value;
        emit(out, value);
      }
      out << YAML::EndMap;
      break;
  }
}

}  // namespace

std::string ConfigNode::to_yaml() const {
  YAML::Emitter out;
  emit(out, *this);
  return std::string(out.c_str()) + "\n";
}

std::string ConfigNode::to_line() const {
  YAML::Emitter out;
  out.SetMapFormat(YAML::Flow);
  out.SetSeqFormat(YAML::Flow);
  emit(out, *this);
  return out.c_str();
}

namespace {

using Flat = std::map<std::string, std::string>;

void flatten(const ConfigNode& node, const std::string& key, Flat& values) {
  const auto below = [&](const std::string& name) { return key.empty() ? name : key + "." + name; };
  if (node.is_scalar()) values[key] = node.text();
  if (node.is_map())
    for (const auto& [name, entry] : node.entries()) flatten(entry, below(name), values);
  if (node.is_list())
    for (size_t i = 0; i < node.items().size(); ++i) flatten(node.items()[i], below(std::to_string(i)), values);
}

std::string value_or_nothing(const Flat& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? "" : found->second;
}

}  // namespace

std::string ConfigDifference::text() const {
  const auto shown = [](const std::string& value) { return value.empty() ? "nothing" : value; };
  return key + ": " + shown(first) + " and " + shown(second);
}

std::vector<ConfigDifference> differences(const ConfigNode& first, const ConfigNode& second) {
  Flat ours, theirs, keys;
  flatten(first, "", ours);
  flatten(second, "", theirs);
  keys = ours;
  keys.insert(theirs.begin(), theirs.end());
  std::vector<ConfigDifference> found;
  for (const auto& [key, value] : keys) {
    const std::string a = value_or_nothing(ours, key), b = value_or_nothing(theirs, key);
    if (a != b) found.push_back({key, a, b});
  }
  return found;
}

}  // namespace lacuna
