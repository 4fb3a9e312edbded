#include "config/rules.h"

#include "base/spelling.h"

namespace lacuna {
namespace {

/// Returns the node of a dotted key; null if it is not written.
const ConfigNode* node_at(const ConfigNode& node, const std::string& key) {
  if (node.path() == key) return &node;
  for (const auto& [name, value] : node.entries())
    if (const ConfigNode* found = node_at(value, key)) return found;
  for (const ConfigNode& item : node.items())
    if (const ConfigNode* found = node_at(item, key)) return found;
  return nullptr;
}

bool is_on_command_line(const ConfigNode& node) {
  return node.place().line == 0;
}

}  // namespace

void Rules::require(bool holds, const std::vector<std::string>& keys, const std::string& message) const {
  if (holds) return;
  const ConfigNode* const named = first_written(keys);
  std::vector<std::string> others;
  for (const std::string& key : keys) {
    const ConfigNode* const node = written(key);
    if (node != nullptr && !is_on_command_line(*node) && node->place().file != named->place().file)
      others.push_back(key + ": " + node->place().text());
  }
  std::string text = place(keys) + message;
  if (!others.empty()) text.append(" (").append(join(others)).append(")");
  throw ConfigError(text);
}

std::string Rules::place(const std::vector<std::string>& keys) const {
  const ConfigNode* const named = first_written(keys);
  return named == nullptr ? "" : named->place().text() + ": ";
}

/// Returns the node of a key; null if it is empty or has no place.
const ConfigNode* Rules::written(const std::string& key) const {
  const ConfigNode* const node = node_at(tree_, key);
  if (node == nullptr || node->is_null() || node->place().text().empty()) return nullptr;
  return node->is_scalar() && node->text().empty() ? nullptr : node;
}

const ConfigNode* Rules::first_written(const std::vector<std::string>& keys) const {
  const ConfigNode* in_file = nullptr;
  for (const std::string& key : keys) {
    const ConfigNode* const node = written(key);
    if (node == nullptr) continue;
    if (is_on_command_line(*node)) return node;
    if (in_file == nullptr) in_file = node;
  }
  return in_file;
}

}  // namespace lacuna
