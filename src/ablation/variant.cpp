#include "ablation/variant.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/error.h"
#include "base/spelling.h"
#include "config/load.h"
#include "config/read_options.h"
#include "config/yaml.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

bool is_one_of(const std::string& word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

const std::vector<std::string> kSections = {"model", "train", "translate"};

/// Keys that tell the long form of a variant from an attention choice.
const std::vector<std::string> kLongFormKeys = {"attention", "model", "train", "translate", "extends", "seeds", "against"};

bool has_key_of(const ConfigNode& map, const std::vector<std::string>& keys) {
  return std::any_of(map.entries().begin(), map.entries().end(), [&](const auto& entry) { return is_one_of(entry.first, keys); });
}

/// Returns true for what may stand under model.attention: a type, a choice with its options, or choices by site.
bool is_choice(const ConfigNode& node) {
  static const std::vector<std::string> keys = {"type", "default", "encoder_self", "decoder_self", "cross"};
  return node.is_scalar() || (node.is_map() && has_key_of(node, keys));
}

bool names_a_file(const ConfigNode& node) {
  return node.is_scalar() && (node.text().ends_with(".yaml") || node.text().ends_with(".yml"));
}

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string("-_.+=").find(c) != std::string::npos;
}

void require_name(const std::string& name, const ConfigNode& value) {
  if (name.empty() || name[0] == '.' || name[0] == '-' || !std::all_of(name.begin(), name.end(), is_name_character))
    value.fail("\"" + name + "\" is not a name for a variant, which is a folder's too; expected letters, digits and - _ . + =");
}

ConfigNode under_attention(const ConfigNode& choice) {
  return ConfigNode::map({{"model", ConfigNode::map({{"attention", choice}}, choice.place())}}, choice.place());
}

/// A configuration file as a piece of configuration.
ConfigNode overlay_of_file(const ConfigNode& node) {
  if (!names_a_file(node)) node.fail("expected a configuration file, NAME.yaml");
  const fs::path named(node.text()), path = named.is_absolute() ? named : fs::path(node.place().file).parent_path() / named;
  std::error_code error;
  if (!fs::exists(path, error)) node.fail("there is no file " + path.string() + " (relative to the file that says it)");
  ConfigNode tree = read_config_file(path.string());
  for (const auto& [key, value] : tree.entries())
    if (!is_one_of(key, kSections))
      throw ConfigError(value.place().text() + ": a variant changes " + join(kSections) + " only, and this file has `" + key +
                        "`: data, run and seed are those of the whole ablation");
  return tree;
}

std::vector<int64_t> read_seeds(const ConfigNode& node) {
  std::vector<int64_t> seeds;
  for (const ConfigNode& item : node.is_list() ? node.items() : std::vector<ConfigNode>{node}) {
    seeds.push_back(read_int(item));
    if (seeds.back() < 0) item.fail("expected at least 0");
  }
  if (seeds.empty()) node.fail("expected one seed or more");
  return seeds;
}

/// The variant of a map that has keys of the long form.
Variant read_long_form(const std::string& name, const ConfigNode& map) {
  Variant variant = {.name = name, .overlay = ConfigNode::map({}, map.place())};
  ConfigNode pieces = ConfigNode::map({}, map.place());
  for (const auto& [key, value] : map.entries()) {
    if (!is_one_of(key, kLongFormKeys)) value.fail_as_unknown(kLongFormKeys);
    if (is_one_of(key, kSections)) pieces.set(key, value);
    if (key == "extends") variant.overlay = overlay_of_file(value);
    if (key == "seeds") variant.seeds = read_seeds(value);
    if (key == "against") variant.against = read_string(value);
  }
  rename_known_aliases(pieces);
  variant.overlay = merged(variant.overlay, pieces);
  if (const ConfigNode* choice = map.find("attention")) variant.overlay = merged(variant.overlay, under_attention(*choice));
  return variant;
}

Variant read_variant(const std::string& name, const ConfigNode& value) {
  require_name(name, value);
  if (names_a_file(value)) return {.name = name, .overlay = overlay_of_file(value)};
  if (value.is_map() && has_key_of(value, kLongFormKeys)) return read_long_form(name, value);
  if (!is_choice(value)) value.fail("expected what stands under model.attention, a configuration file, or a map of " + join(kLongFormKeys));
  return {.name = name, .overlay = under_attention(value)};
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\n"), end = text.find_last_not_of(" \t\n");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

/// The text between commas that stand outside of brackets and quotes.
std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> pieces = {""};
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0)
      quote = c == quote ? 0 : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '{' || c == '[')
      ++depth;
    else if (c == '}' || c == ']')
      --depth;
    if (c == ',' && depth == 0 && quote == 0)
      pieces.emplace_back();
    else
      pieces.back() += c;
  }
  for (std::string& piece : pieces) piece = trimmed(piece);
  return pieces;
}

/// `word` has the flag for its path.
Variant variant_of_word(const ConfigNode& word, const std::vector<Variant>& defined, const std::vector<std::string>& known_types) {
  std::vector<std::string> known;
  for (const Variant& variant : defined) {
    if (variant.name == word.text()) return variant;
    known.push_back(variant.name);
  }
  if (names_a_file(word)) return read_variant(fs::path(word.text()).stem().string(), word);
  if (is_one_of(word.text(), known_types)) return read_variant(word.text(), word);
  const std::string variants = known.empty() ? "" : "known variants: " + join(known) + "; ";
  known.insert(known.end(), known_types.begin(), known_types.end());
  throw UsageError(word.path() + ": \"" + word.text() + "\" is none that is known; " + variants + "known types: " + join(known_types) +
                   did_you_mean(word.text(), known));
}

/// `topk: {k: 4}` is a type with its options, `mine: {type: topk, k: 4}` a name and what it stands for.
Variant variant_of_entry(const std::string& key, const ConfigNode& value, const std::vector<std::string>& known_types) {
  const bool is_type = is_one_of(key, known_types), is_options = value.is_map() && !is_choice(value) && !has_key_of(value, kLongFormKeys);
  if (!is_type || !is_options) return read_variant(key, value);
  ConfigNode choice = ConfigNode::map({{"type", ConfigNode::scalar(key, value.place())}}, value.place());
  for (const auto& [option, set] : value.entries()) choice.set(option, set);
  return read_variant(name_of_choice(choice), choice);
}

}  // namespace

std::vector<Variant> read_variants(const ConfigNode& map) {
  if (!map.is_map()) map.fail("expected a map from names to attention types: {softmax: softmax, top-8: {type: topk, k: 8}}");
  std::vector<Variant> variants;
  std::vector<std::string> names;
  for (const auto& [name, value] : map.entries()) {
    variants.push_back(read_variant(name, value));
    const std::string& against = variants.back().against;
    if (!against.empty() && !is_one_of(against, names))
      value.fail("it is compared with \"" + against + "\"; expected a variant that stands above it" + did_you_mean(against, names));
    names.push_back(name);
  }
  return variants;
}

std::vector<Variant> take_variants(ConfigNode& configuration) {
  std::vector<Variant> variants;
  if (const ConfigNode* section = configuration.find(kVariantsKey)) variants = read_variants(*section);
  configuration.erase(kVariantsKey);
  return variants;
}

std::vector<Variant> parse_variants(const std::string& text, const std::string& flag, const std::vector<Variant>& defined,
                                    const std::vector<std::string>& known_types) {
  std::vector<Variant> variants;
  for (const std::string& piece : split_at_commas(text)) {
    ConfigNode node = parse_yaml_value(piece, "command line (" + flag + ")");
    node.set_path(flag);
    if (piece.empty() || node.is_null()) throw UsageError(flag + " is \"" + text + "\"; expected names or types between commas");
    const bool is_entry = node.is_map() && node.entries().size() == 1 && !is_choice(node);
    const Variant variant = node.is_scalar() ? variant_of_word(node, defined, known_types)
                            : is_entry       ? variant_of_entry(node.entries()[0].first, node.entries()[0].second, known_types)
                                             : read_variant(name_of_choice(node), node);
    for (const Variant& other : variants)
      if (other.name == variant.name)
        throw UsageError(flag + ": \"" + variant.name + "\" is there twice; give one of them a name: \"mine: {type: ...}\"");
    variants.push_back(variant);
  }
  return variants;
}

ConfigNode attention_of(const Variant& variant, const std::string& flag) {
  const ConfigNode* model = variant.overlay.find("model");
  const ConfigNode* found = model != nullptr ? model->find("attention") : nullptr;
  if (found == nullptr || variant.overlay.entries().size() > 1 || model->entries().size() > 1)
    throw UsageError(flag + ": \"" + variant.name + "\" changes something else than model.attention; lacuna ablate compares such variants");
  ConfigNode attention = *found;
  attention.set_path("model.attention");
  return attention;
}

std::string name_of_choice(const ConfigNode& choice) {
  std::string name;
  if (choice.is_list())
    for (const ConfigNode& item : choice.items()) name.append(name.empty() ? "" : "+").append(name_of_choice(item));
  if (choice.is_scalar()) name = choice.text();
  if (const ConfigNode* type = choice.find("type")) name = type->text();
  for (const auto& [key, value] : choice.entries())
    if (key != "type") name += (name.empty() ? "" : "-") + key + "=" + name_of_choice(value);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !is_name_character(c); }, '_');
  return name;
}

}  // namespace lacuna
