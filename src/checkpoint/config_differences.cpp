#include "checkpoint/config_differences.h"

#include <map>

namespace lacuna {
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
