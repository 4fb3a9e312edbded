#include "config/yaml.h"

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace lacuna {
namespace {

constexpr int kMaxDepth = 64;
constexpr int kMaxNodes = 100000;
constexpr uintmax_t kMaxBytes = 16 << 20;

/// Turns yaml-cpp's tree into ours.
class Converter {
 public:
  explicit Converter(std::string file) : file_(std::move(file)) {}

  ConfigNode convert(const YAML::Node& node, int depth = 0) {
    const Place place{file_, node.Mark().line + 1};
    if (depth > kMaxDepth) throw ConfigError(place.text() + ": nested more than " + std::to_string(kMaxDepth) + " levels deep");
    if (++nodes_ > kMaxNodes) throw ConfigError(place.text() + ": more than " + std::to_string(kMaxNodes) + " values");
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        return ConfigNode::scalar(node.Scalar(), place);
      case YAML::NodeType::Sequence:
        return list(node, place, depth);
      case YAML::NodeType::Map:
        return map(node, place, depth);
      default:
        return {};
    }
  }

 private:
  ConfigNode list(const YAML::Node& node, const Place& place, int depth) {
    std::vector<ConfigNode> items;
    for (const YAML::Node& item : node) items.push_back(convert(item, depth + 1));
    return ConfigNode::list(std::move(items), place);
  }

  ConfigNode map(const YAML::Node& node, const Place& place, int depth) {
    ConfigNode result = ConfigNode::map({}, place);
    for (const auto& entry : node) {
      const Place here{file_, entry.first.Mark().line + 1};
      if (!entry.first.IsScalar()) throw ConfigError(here.text() + ": a key must be a word");
      const std::string& key = entry.first.Scalar();
      if (const ConfigNode* first = result.find(key))
        throw ConfigError(here.text() + ": key \"" + key + "\" is there twice, first in line " + std::to_string(first->place().line) +
                          "; keep one of them");
      result.set(key, convert(entry.second, depth + 1));
    }
    return result;
  }

  std::string file_;
  int nodes_ = 0;
};

}  // namespace

ConfigNode parse_yaml(const std::string& text, const std::string& file) {
  try {
    return Converter(file).convert(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    const std::string line = error.mark.is_null() ? "" : ":" + std::to_string(error.mark.line + 1);
    throw ConfigError(file + line + ": not YAML: " + error.msg);
  }
}

ConfigNode read_yaml_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw ConfigError(path + ": there is no such configuration file");
  if (std::filesystem::is_directory(status)) throw ConfigError(path + ": is a folder; expected a configuration file");
  if (std::filesystem::is_regular_file(status) && std::filesystem::file_size(path, error) > kMaxBytes)
    throw ConfigError(path + ": larger than 16 MB; expected a configuration file");
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  if (!stream || !(text << stream.rdbuf() || stream.eof())) throw ConfigError(path + ": cannot be read");
  return parse_yaml(text.str(), path);
}

}  // namespace lacuna
