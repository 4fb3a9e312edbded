#include "attention/registry.h"

#include <algorithm>
#include <utility>

#include "attention/probe.h"
#include "attention/rows/row_numbers.h"
#include "base/spelling.h"

namespace lacuna {
namespace {

/// The entry that `node`, a scalar, names; `what` is its kind in the error.
template <class Entry>
const Entry& named(std::span<const Entry* const> entries, const ConfigNode& node, const std::string& what) {
  std::vector<std::string> names;
  for (const Entry* entry : entries) {
    if (node.text() == entry->name) return *entry;
    names.push_back(entry->name);
  }
  node.fail("known " + what + "s: " + join(names) + did_you_mean(node.text(), names));
}

/// A choice is a bare name or a map with `type`: gives the name's node. The rest of the map are options.
const ConfigNode& type_node(const ConfigNode& node, const std::string& what) {
  if (node.is_scalar()) return node;
  const ConfigNode* type = node.is_map() ? node.find("type") : nullptr;
  if (type == nullptr || !type->is_scalar()) node.fail("expected the name of " + what + ", or a map with `type`");
  return *type;
}

ConfigNode options_of(const ConfigNode& node, std::initializer_list<const char*> others) {
  if (!node.is_map()) return ConfigNode::map({}, node.place());
  ConfigNode options = node;
  for (const char* key : others) options.erase(key);
  return options;
}

/// Throws for a key among a type's options that was meant for one beside them, or that belongs to the maps around a type: `default`,
/// `layers` and sites. No option has a name like these.
void refuse_foreign_keys(const ConfigNode& options, bool has_base) {
  std::vector<std::string> around = {"layers"}, meant = {"type", "pattern", "norm", "default"};
  for (const AttentionSite site : kAttentionSites) around.emplace_back(name_of(site));
  if (has_base) meant.emplace_back("base");
  meant.insert(meant.end(), around.begin(), around.end());
  for (const auto& [key, value] : options.entries()) {
    if (key == "default") value.fail("default does not go beside `type`: each says which attention it is; keep one of them");
    const std::string where = key == "layers" ? "the `default` of a site" : "`default`";
    if (std::find(around.begin(), around.end(), key) != around.end())
      value.fail(key + " does not go among a type's options; put the type and its options under " + where + ", and " + key + " beside it");
    if (const std::string end = did_you_mean(key, meant); !end.empty()) value.fail("unknown key" + end);
  }
}

struct NamedPattern {
  std::shared_ptr<const AttentionPattern> pattern;
  ConfigNode description;
  bool needs_distance;
};

NamedPattern make_pattern(const ConfigNode& node) {
  const auto& entry = named(patterns::all_patterns(), type_node(node, "a pattern"), "pattern");
  ConfigNode description, options;
  auto pattern = entry.read(options_of(node, {"type"}), options);
  description.set("type", ConfigNode::scalar(entry.name));
  for (const auto& [key, value] : options.entries()) description.set(key, value);
  return {std::move(pattern), std::move(description), entry.needs_distance};
}

/// `pattern:` one for all heads, or {heads: [one a head]}; no node = full.
std::vector<NamedPattern> make_patterns(const ConfigNode* node, int64_t num_heads) {
  if (node == nullptr) return {make_pattern(ConfigNode::scalar("full"))};
  const ConfigNode* heads = node->is_map() ? node->find("heads") : nullptr;
  if (heads == nullptr) return {make_pattern(*node)};
  if (!heads->is_list() || static_cast<int64_t>(heads->items().size()) != num_heads)
    heads->fail("expected a list of " + std::to_string(num_heads) + " patterns, one for each head");
  for (const auto& [key, value] : node->entries())
    if (key != "heads") value.fail("`heads` gives each head its pattern; expected nothing beside it");
  std::vector<NamedPattern> patterns;
  for (const ConfigNode& head : heads->items()) patterns.push_back(make_pattern(head));
  return patterns;
}

ConfigNode describe_patterns(const std::vector<NamedPattern>& patterns) {
  if (patterns.size() == 1) return patterns[0].description;
  std::vector<ConfigNode> heads;
  heads.reserve(patterns.size());
  for (const NamedPattern& pattern : patterns) heads.push_back(pattern.description);
  return ConfigNode::map({{"heads", ConfigNode::list(std::move(heads))}});
}

/// `base:` of a type with a mask, by name or as a map; no node = softmax.
std::shared_ptr<const AttentionType> make_base(const types::TypeEntry& entry, const void* options, const ConfigNode& node,
                                               int64_t num_heads) {
  const ConfigNode* given = node.is_map() ? node.find("base") : nullptr;
  const ConfigNode chosen = given != nullptr ? *given : ConfigNode::scalar("softmax", node.place());
  for (const char* key : {"pattern", "norm"})
    if (const ConfigNode* misplaced = chosen.is_map() ? chosen.find(key) : nullptr)
      misplaced->fail("it belongs to the whole attention: write it beside `base`, not in it");
  auto base = make_attention_type(chosen, num_heads);
  if (base->takes_mask()) chosen.fail("a type with a mask of its own cannot be a base; expected softmax or another type without");
  entry.check_base(options, chosen, base->entry().info);
  return base;
}

ConfigNode describe_base(const AttentionType& base) {
  ConfigNode description = base.description();
  description.erase("pattern");
  return description;
}

}  // namespace

AttentionType::AttentionType(const types::TypeEntry& entry, std::shared_ptr<const void> options,
                             std::vector<std::shared_ptr<const AttentionPattern>> patterns, ConfigNode description, bool needs_distance,
                             std::shared_ptr<const AttentionType> base)
    : entry_(entry),
      options_(std::move(options)),
      patterns_(std::move(patterns)),
      description_(std::move(description)),
      needs_distance_(needs_distance),
      base_(std::move(base)) {}

int AttentionType::num_numbers() const {
  const int own = entry_.num_numbers(options());
  return base_ ? base_->num_numbers() + own : own;
}

std::vector<std::string> types::known_types() {
  std::vector<std::string> names;
  names.reserve(all_types().size());
  for (const TypeEntry* entry : all_types()) names.emplace_back(entry->name);
  return names;
}

std::shared_ptr<const AttentionType> make_attention_type(const ConfigNode& node, int64_t num_heads) {
  const auto& entry = named(types::all_types(), type_node(node, "an attention type"), "type");
  ConfigNode own = options_of(node, {"type", "pattern", "norm"});
  if (entry.takes_mask) own = options_of(own, {"base"});
  refuse_foreign_keys(own, entry.takes_mask);
  auto options = entry.read(own);
  auto base = entry.takes_mask ? make_base(entry, options.get(), node, num_heads) : nullptr;
  const auto named_patterns = make_patterns(node.is_map() ? node.find("pattern") : nullptr, num_heads);

  ConfigNode description;
  description.set("type", ConfigNode::scalar(entry.name));
  if (base) description.set("base", describe_base(*base));
  const ConfigNode written = entry.write(options.get());
  for (const auto& [key, value] : written.entries()) description.set(key, value);
  description.set("pattern", describe_patterns(named_patterns));

  std::vector<std::shared_ptr<const AttentionPattern>> patterns;
  bool needs_distance = false;
  for (const NamedPattern& pattern : named_patterns) {
    patterns.push_back(pattern.pattern);
    needs_distance = needs_distance || pattern.needs_distance;
  }
  return std::make_shared<AttentionType>(entry, std::move(options), std::move(patterns), std::move(description), needs_distance,
                                         std::move(base));
}

std::shared_ptr<RowNumbers> make_row_numbers(const AttentionType& type, int64_t num_heads, int64_t d_model) {
  return type.of_scores().entry().make_numbers(type.of_scores().options(), num_heads, d_model);
}

}  // namespace lacuna
