#include <algorithm>

#include "config/load.h"

namespace lacuna {
namespace {

/// True for a map of attention choices by site or layer, false for one choice with its options.
bool holds_choices(const ConfigNode& map) {
  return std::any_of(map.entries().begin(), map.entries().end(), [](const auto& entry) {
    return entry.first == "default" || entry.first == "layers" || entry.first == "cross" || entry.first.ends_with("_self");
  });
}

/// Writes a choice as a map that `over` can merge with: `topk` under {k: 4} is {type: topk}, under {layers: ...} {default: topk}.
ConfigNode spelled_out(const ConfigNode& under, const ConfigNode& over) {
  if (under.is_null() || !over.is_map()) return under;
  if (holds_choices(over)) return holds_choices(under) ? under : ConfigNode::map({{"default", under}}, under.place());
  if (under.is_scalar() && over.find("type") == nullptr) return ConfigNode::map({{"type", under}}, under.place());
  return under;
}

/// True for a map that names a choice, false for a map of options alone.
bool is_whole(const ConfigNode& map) {
  return map.find("type") != nullptr || map.find("heads") != nullptr;
}

/// True if `over` names a choice, which replaces the one in `under` even if it has the same type.
bool is_another_choice(const ConfigNode& under, const ConfigNode& over) {
  return is_whole(over) && (is_whole(under) || holds_choices(under));
}

/// Merges options without a type onto each choice of a map.
ConfigNode each_with(const ConfigNode& choices, const ConfigNode& options, const std::string& path) {
  ConfigNode result = choices;
  for (const auto& [key, choice] : choices.entries()) {
    const std::string below = path + "." + key;
    result.set(key, key == "layers" ? each_with(choice, options, below) : merged(choice, options, below));
  }
  return result;
}

/// True for a section of other keys, false for a value that null clears (such as data.valid).
bool is_section(const std::string& path, const ConfigNode& node) {
  return path == "model.attention" || (node.is_map() && path.find('.') == std::string::npos);
}

/// True if `model` names a preset; null and empty only remove an earlier name.
bool names_preset(const ConfigNode& model) {
  const ConfigNode* preset = model.find("preset");
  return preset != nullptr && !preset->is_null() && !(preset->is_scalar() && preset->text().empty());
}

/// Returns `model` without the sizes that a preset sets.
ConfigNode without_preset_sizes(ConfigNode model) {
  for (const char* size : {"d_model", "num_heads", "d_ff", "encoder_layers", "decoder_layers"}) model.erase(size);
  return model;
}

ConfigNode merged_attention(const ConfigNode& under, const ConfigNode& over, const std::string& path) {
  ConfigNode result = spelled_out(under, over);
  if (!result.is_map() || !over.is_map() || is_another_choice(result, over)) return over;
  if (holds_choices(result) && !holds_choices(over) && !over.entries().empty()) {
    if (result.find("default") == nullptr) result.set("default", ConfigNode::map({}, over.place()));
    return each_with(result, over, path);
  }
  for (const auto& [key, value] : over.entries()) {
    const ConfigNode* below = result.find(key);
    result.set(key, below != nullptr ? merged_attention(*below, value, path + "." + key) : value);
  }
  return result;
}

}  // namespace

ConfigNode merged(const ConfigNode& under, const ConfigNode& over, const std::string& path) {
  if (over.is_null() && is_section(path, under)) return under;
  if (path.starts_with("model.attention")) return merged_attention(under, over, path);
  if (under.is_map() && !over.is_map() && is_section(path, under)) over.fail("expected a map of its keys");
  if (!under.is_map() || !over.is_map()) return over;
  ConfigNode result = path == "model" && names_preset(over) ? without_preset_sizes(under) : under;
  for (const auto& [key, value] : over.entries()) {
    const ConfigNode* below = result.find(key);
    result.set(key, below != nullptr ? merged(*below, value, path.empty() ? key : path + "." + key) : value);
  }
  return result;
}

}  // namespace lacuna
