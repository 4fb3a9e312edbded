#include "attention/registry.h"

#include <algorithm>
#include <utility>

#include "attention/calibrated_options.h"
#include "attention/norms/norm.h"
#include "attention/probe.h"
#include "attention/rows/row_numbers.h"
#include "base/spelling.h"

namespace lacuna {
namespace {

/// The entry that `node`, a scalar, names; `what` is its kind in the error, which lists `known` names.
template <class Entry>
const Entry& named(std::span<const Entry* const> entries, const ConfigNode& node, const std::string& what,
                   const std::vector<std::string>& known) {
  for (const Entry* entry : entries)
    if (node.text() == entry->name) return *entry;
  node.fail("known " + what + "s: " + join(known) + did_you_mean(node.text(), known));
}

template <class Entry>
std::vector<std::string> names_of(std::span<const Entry* const> entries) {
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const Entry* entry : entries) names.emplace_back(entry->name);
  return names;
}

/// Returns the node of the name in a choice: a bare name, or a map with `type`, of which the rest are options.
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

/// Throws for a key among a type's options that was meant for one beside them, or that belongs to the maps around a
/// type: `default`, `layers` and sites. No option has a name like these.
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
    if (!nearest_word(key, meant).empty()) value.fail_as_unknown(meant);
  }
}

/// The names of a type's options.
std::vector<std::string> option_names(const types::TypeEntry& entry) {
  const auto defaults = entry.read(ConfigNode::map({}));
  std::vector<std::string> names;
  const ConfigNode written = entry.write(defaults.get());
  for (const auto& [key, value] : written.entries()) names.push_back(key);
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Throws for an option that another type has, and names that type.
void refuse_options_of_other_types(const types::TypeEntry& entry, const ConfigNode& options) {
  const std::vector<std::string> own = option_names(entry);
  for (const auto& [key, value] : options.entries()) {
    if (contains(own, key)) continue;
    std::vector<std::string> owners;
    for (const types::TypeEntry* other : types::all_types())
      if (contains(option_names(*other), key)) owners.emplace_back(other->name);
    if (owners.empty()) continue;
    value.fail(std::string(entry.name) + (own.empty() ? " has no options" : " has no option " + key) + "; for " + key +
               " set type: " + join(owners, " or "));
  }
}

struct NamedPattern {
  std::shared_ptr<const AttentionPattern> pattern;
  ConfigNode description;
  bool needs_distance;
};

NamedPattern make_pattern(const ConfigNode& node) {
  const auto& entry = named(patterns::all_patterns(), type_node(node, "a pattern"), "pattern", names_of(patterns::all_patterns()));
  ConfigNode description, options;
  auto pattern = entry.read(options_of(node, {"type"}), options);
  description.set("type", ConfigNode::scalar(entry.name));
  for (const auto& [key, value] : options.entries()) description.set(key, value);
  return {std::move(pattern), std::move(description), entry.needs_distance};
}

/// Reads `pattern`: one for all heads, or {heads: [one a head]}; no node = full.
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

/// {type: name, pattern: ..., the type's options}, which the core computes alone.
AttentionType make_row_type(const ConfigNode& node, int64_t num_heads) {
  const ConfigNode& name = type_node(node, "an attention type");
  const types::TypeEntry& entry = named(types::all_types(), name, "type", types::known_types());
  const ConfigNode own = options_of(node, {"type", "pattern", "norm"});
  refuse_foreign_keys(own, /*has_base=*/false);
  refuse_options_of_other_types(entry, own);
  auto options = entry.read(own);
  const auto named_patterns = make_patterns(node.is_map() ? node.find("pattern") : nullptr, num_heads);

  ConfigNode description;
  description.set("type", ConfigNode::scalar(entry.name));
  const ConfigNode written = entry.write(options.get());
  for (const auto& [key, value] : written.entries()) description.set(key, value);
  description.set("pattern", describe_patterns(named_patterns));

  std::vector<std::shared_ptr<const AttentionPattern>> patterns;
  bool needs_distance = false;
  for (const NamedPattern& pattern : named_patterns) {
    patterns.push_back(pattern.pattern);
    needs_distance = needs_distance || pattern.needs_distance;
  }
  return {entry, std::move(options), std::move(patterns), std::move(description), needs_distance};
}

const norms::NormEntry& named_norm(const ConfigNode& name) {
  return named(norms::all_norms(), name, "norm", names_of(norms::all_norms()));
}

bool is_calibrated(const ConfigNode& node) {
  return type_node(node, "an attention type").text() == CalibratedOptions::kName;
}

/// The `base` of calibrated attention, by name or as a map (no node = softmax), with the pattern of the whole.
AttentionType make_base(const CalibratedOptions& options, const ConfigNode& node, int64_t num_heads) {
  const ConfigNode* given = node.is_map() ? node.find("base") : nullptr;
  const ConfigNode chosen = given != nullptr ? *given : ConfigNode::scalar("softmax", node.place());
  for (const char* key : {"pattern", "norm"})
    if (const ConfigNode* misplaced = chosen.is_map() ? chosen.find(key) : nullptr)
      misplaced->fail("it belongs to the whole attention: write it beside `base`, not in it");
  if (is_calibrated(chosen)) chosen.fail("a type with a mask of its own cannot be a base; expected softmax or another type without");
  ConfigNode whole = chosen.is_map() ? chosen : ConfigNode::map({{"type", chosen}}, chosen.place());
  if (const ConfigNode* pattern = node.is_map() ? node.find("pattern") : nullptr) whole.set("pattern", *pattern);
  AttentionType base = make_row_type(whole, num_heads);
  options.check_base(chosen, base.entry().info);
  return base;
}

std::shared_ptr<const AttentionType> make_calibrated(const ConfigNode& node, int64_t num_heads) {
  const ConfigNode own = options_of(node, {"type", "pattern", "norm", "base"});
  refuse_foreign_keys(own, /*has_base=*/true);
  auto options = std::make_shared<const CalibratedOptions>(CalibratedOptions::read(own));
  const AttentionType base = make_base(*options, node, num_heads);

  ConfigNode description, of_base = base.description();
  of_base.erase("pattern");
  description.set("type", ConfigNode::scalar(CalibratedOptions::kName));
  description.set("base", of_base);
  const ConfigNode written = options->write();
  for (const auto& [key, value] : written.entries()) description.set(key, value);
  description.set("pattern", *base.description().find("pattern"));
  return std::make_shared<AttentionType>(base, std::move(options), std::move(description));
}

}  // namespace

AttentionType::AttentionType(const types::TypeEntry& entry, std::shared_ptr<const void> options,
                             std::vector<std::shared_ptr<const AttentionPattern>> patterns, ConfigNode description, bool needs_distance)
    : entry_(entry),
      options_(std::move(options)),
      patterns_(std::move(patterns)),
      description_(std::move(description)),
      needs_distance_(needs_distance) {}

AttentionType::AttentionType(const AttentionType& base, std::shared_ptr<const CalibratedOptions> calibrated, ConfigNode description)
    : AttentionType(base) {
  calibrated_ = std::move(calibrated);
  description_ = std::move(description);
}

std::string AttentionType::name() const {
  return calibrated_ ? CalibratedOptions::kName : entry_.name;
}

bool AttentionType::has_gate() const {
  return calibrated_ && calibrated_->combine == CalibratedOptions::Combine::kGate;
}

LayeredTypeHelp layered_type_help() {
  return {CalibratedOptions::kName, CalibratedOptions::kPaper,
          "`base` is the type, with its options, whose weights are calibrated; default `softmax`", option_help<CalibratedOptions>()};
}

std::vector<std::string> types::known_types() {
  std::vector<std::string> names = names_of(all_types());
  names.emplace_back(CalibratedOptions::kName);
  return names;
}

std::shared_ptr<const AttentionType> make_attention_type(const ConfigNode& node, int64_t num_heads) {
  if (is_calibrated(node)) return make_calibrated(node, num_heads);
  return std::make_shared<AttentionType>(make_row_type(node, num_heads));
}

std::shared_ptr<AttentionNorm> make_attention_norm(const std::string& name, const ConfigNode& options, int64_t d_model, uint64_t key) {
  return named_norm(ConfigNode::scalar(name)).make(options, d_model, key);
}

void check_attention_norm(const ConfigNode& node) {
  named_norm(type_node(node, "a norm")).make(options_of(node, {"type"}), /*d_model=*/1, /*key=*/0);
}

std::shared_ptr<RowNumbers> make_row_numbers(const AttentionType& type, int64_t num_heads, int64_t d_model) {
  return type.entry().make_numbers(type.options(), num_heads, d_model);
}

namespace {

/// Returns a heading, and below it each entry's name, a remark on it, and its options.
template <class Entries, class Remark>
std::string section(const std::string& heading, const Entries& entries, Remark remark) {
  std::string text = heading + "\n";
  for (const auto* entry : entries) {
    text.append("  ").append(entry->name).append(remark(*entry)).append("\n");
    text += help_lines(entry->help(), "    ");
  }
  return text;
}

std::string remark_on_type(const types::TypeEntry& type) {
  const std::string paper = std::string(type.info.paper).empty() ? "" : std::string("  ") + type.info.paper, norm = type.info.default_norm;
  return norm == "none" ? paper : paper + "  (norm " + norm + ", unless another is named)";
}

std::string layered_section() {
  const LayeredTypeHelp help = layered_type_help();
  std::string remark = help.remark;
  std::erase(remark, '`');
  return "  " + help.name + "  " + help.paper + "  (" + remark + ")\n" + help_lines(help.options, "    ");
}

}  // namespace

std::string attention_help() {
  const auto nothing = [](const auto& /*entry*/) { return ""; };
  return section(
             "Under model.attention, for all or for each of default, encoder_self, decoder_self, cross (and there for each of default,\n"
             "layers.0, layers.1, ...), a type's name or {type, its options, pattern, norm}. Types:",
             types::all_types(), remark_on_type) +
         layered_section() +
         section("Patterns, one for all heads or {heads: [one for each]}; a name or {type, its options}:", patterns::all_patterns(),
                 nothing) +
         section("Norms over the concatenated heads; a name or {type, its options}:", norms::all_norms(), nothing);
}

}  // namespace lacuna
