#include "config/load.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/files.h"
#include "config/read_options.h"
#include "config/yaml.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr int kMostFiles = 100;

std::string filled_in(const ConfigNode& node) {
  std::string text = node.text();
  for (size_t at = text.find("${"); at != std::string::npos; at = text.find("${", at)) {
    const size_t end = text.find('}', at);
    if (end == std::string::npos) node.fail("${ has no }");
    const std::string name = text.substr(at + 2, end - at - 2);
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) node.fail("the environment variable " + name + " is not set; set it, or write the path itself");
    if (first_invalid_utf8(value)) node.fail("the environment variable " + name + " is not UTF-8");
    text.replace(at, end - at + 1, value);
    at += std::string(value).size();
  }
  return text;
}

ConfigNode with_variables(const ConfigNode& node) {
  if (node.is_scalar()) return node.text().find("${") == std::string::npos ? node : ConfigNode::scalar(filled_in(node), node.place());
  if (node.is_list()) {
    std::vector<ConfigNode> items;
    for (const ConfigNode& item : node.items()) items.push_back(with_variables(item));
    return ConfigNode::list(std::move(items), node.place());
  }
  ConfigNode result = node;
  for (const auto& [key, value] : node.entries()) result.set(key, with_variables(value));
  return result;
}

/// Reads a file, merged over the files that it extends. `chain` lists the files that led here; `files` counts all that are read.
ConfigNode read_with_bases(const std::string& file, std::vector<std::string> chain, int& files) {
  std::error_code error;
  const std::string self = fs::weakly_canonical(file, error).string();
  if (std::find(chain.begin(), chain.end(), self) != chain.end())
    throw ConfigError(file + ": extends itself by way of " + join(chain, " -> ") + "; remove one `extends`");
  if (++files > kMostFiles)
    throw ConfigError(file + ": more than " + std::to_string(kMostFiles) +
                      " files are read by way of `extends`; let each base be extended once");
  chain.push_back(self);
  ConfigNode tree = read_yaml_file(file);
  if (tree.is_null()) tree = ConfigNode::map({}, {file, 1});
  if (!tree.is_map()) throw ConfigError(file + ":1: expected `key: value` lines");
  tree.set_path("");
  rename_known_aliases(tree);
  const ConfigNode* extends = tree.find("extends");
  if (extends == nullptr) return tree;
  ConfigNode base;
  for (const std::string& name : read_strings(with_variables(*extends))) {
    const fs::path path = fs::path(name).is_absolute() ? fs::path(name) : fs::path(file).parent_path() / name;
    if (!fs::exists(path, error)) extends->fail("there is no file " + path.string() + " (relative to the file that says it)");
    const ConfigNode next = read_with_bases(path.string(), chain, files);
    base = base.is_null() ? next : merged(base, next);
  }
  tree.erase("extends");
  return merged(base, tree);
}

/// {model: {attention: {cross: {k: 16}}}} from "model.attention.cross.k" and its value.
ConfigNode nested(const std::string& key, ConfigNode value, const Place& place) {
  const size_t dot = key.rfind('.');
  const std::string last = dot == std::string::npos ? key : key.substr(dot + 1);
  if (last.empty()) throw UsageError("--" + key + ": expected --section.key value");
  ConfigNode map = ConfigNode::map({{last, std::move(value)}}, place);
  return dot == std::string::npos ? map : nested(key.substr(0, dot), std::move(map), place);
}

/// Parses a word of the command line as YAML if it begins a list, a map or a quoted text, or is null; else trims it: " #" may be in a path.
ConfigNode value_of(const std::string& word, const Place& place) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = std::min(word.find_first_not_of(kBlanks), word.size());
  const std::string text = word.substr(begin, word.find_last_not_of(kBlanks) + 1 - begin);
  const bool is_null = text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
  if (is_null || std::string_view("[{'\"").find(text.front()) != std::string_view::npos) return parse_yaml_value(text, place.file);
  require_utf8(text, place);
  return ConfigNode::scalar(text, place);
}

ConfigNode override_tree(const std::vector<std::string>& words) {
  ConfigNode tree = ConfigNode::map({});
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("--") || word.size() < 3)
      throw UsageError("\"" + word + "\" is not understood; expected --section.key value (a file follows its flag: see --help)");
    const size_t equals = word.find('=');
    const std::string key = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (equals == std::string::npos && (i + 1 == words.size() || words[i + 1].starts_with("--")))
      throw UsageError("--" + key + ": the value is missing; one that begins with -- is written --" + key + "=VALUE");
    const std::string value = equals == std::string::npos ? words[++i] : word.substr(equals + 1);
    const Place place{"command line (--" + key + ")", 0};
    tree = merged(tree, nested(key, value_of(value, place), place));
  }
  tree.set_path("");
  rename_known_aliases(tree);
  return tree;
}

/// Throws ConfigError for an override of a key that is fixed once a model is trained.
void require_changeable(const ConfigNode& node) {
  if (node.path() == "translate" || node.path() == "model.attention") return;
  if (!node.is_map()) node.fail("a trained model keeps that; only keys of translate and of model.attention can be changed");
  for (const auto& [key, value] : node.entries()) require_changeable(value);
}

}  // namespace

ConfigNode load_config_tree(const ConfigSources& sources) {
  ConfigNode tree = ConfigNode::map({});
  for (const std::string& file : sources.files) tree = merged(tree, read_config_file(file));
  for (const ConfigNode& overlay : sources.overlays) tree = merged(tree, overlay);
  tree = with_variables(merged(tree, override_tree(sources.overrides)));
  tree.set_path("");
  return tree;
}

ConfigNode read_config_file(const std::string& file) {
  int files = 0;
  return read_with_bases(file, {}, files);
}

Options with_overrides(const Options& options, const std::vector<std::string>& overrides) {
  ConfigNode changes = with_variables(override_tree(overrides));
  changes.set_path("");
  ConfigNode tree = merged(write_options(options), changes);
  tree.set_path("");
  Options changed = options_from(tree);
  require_changeable(changes);
  return changed;
}

std::string to_yaml(const Options& options) {
  return write_options(options).to_yaml();
}

Options options_from_yaml(const std::string& yaml, const std::string& place) {
  ConfigNode tree = parse_yaml(yaml, place);
  replace_removed_settings(tree);
  tree.set_path("");
  return options_from(tree);
}

}  // namespace lacuna
