#include "config/attention_variant.h"

#include <algorithm>

#include "config/yaml.h"

namespace lacuna {
namespace {

AttentionVariant variant_of(ConfigNode node) {
  if (!node.is_map() && (!node.is_scalar() || node.text().empty()))
    node.fail("expected attention types with commas between them, names or maps: topk,{type: entmax, alpha: learned}");
  node.set_path("model.attention");
  return {node.is_scalar() ? node.text() : node.to_line(), node};
}

}  // namespace

std::vector<AttentionVariant> read_attention_variants(const std::string& text, const std::string& place) {
  const ConfigNode list = parse_yaml_value("[" + text + "]", place);
  if (!list.is_list() || list.items().empty())
    throw ConfigError(place + ": \"" + text + "\" names no attention; expected types with commas between them: topk,rela");
  std::vector<AttentionVariant> variants;
  for (const ConfigNode& item : list.items()) {
    AttentionVariant variant = variant_of(item);
    const auto is_same = [&](const AttentionVariant& other) { return other.name == variant.name; };
    if (std::any_of(variants.begin(), variants.end(), is_same)) throw ConfigError(place + ": " + variant.name + " is there twice");
    variants.push_back(std::move(variant));
  }
  return variants;
}

}  // namespace lacuna
