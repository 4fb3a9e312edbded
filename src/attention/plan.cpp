#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "attention/attention.h"
#include "attention/calibrated_options.h"
#include "attention/norms/norm.h"
#include "attention/registry.h"
#include "base/spelling.h"
#include "config/load.h"
#include "config/read_options.h"

namespace lacuna {
namespace {

constexpr const char* kDefault = "default";
constexpr const char* kLayers = "layers";

/// Returns true if the node is one choice: a bare word, or a map with `type`.
bool is_choice(const ConfigNode& node) {
  return node.is_scalar() || (node.is_map() && node.find("type") != nullptr);
}

/// Returns true for a map of choices by layer.
bool holds_layers(const ConfigNode& node) {
  return node.is_map() && (node.find(kDefault) != nullptr || node.find(kLayers) != nullptr);
}

/// Throws ConfigError for a key that is not `known`. meant: words that a misspelled key may stand for.
void refuse_unknown_keys(const ConfigNode& map, const std::vector<std::string>& known, const std::vector<std::string>& meant) {
  if (!map.is_map()) map.fail("expected an attention type, or a map of " + join(known));
  for (const auto& [key, value] : map.entries())
    if (std::find(known.begin(), known.end(), key) == known.end()) value.fail_as_unknown(known, meant);
}

/// Returns the choice of `node` where `inherited` is the choice without it: a map of options alone overrides some of
/// the inherited ones.
ConfigNode choice_over(const ConfigNode& inherited, const ConfigNode& node) {
  if (is_choice(node)) return node;
  if (!node.is_map()) node.fail("expected an attention type, or a map of its options");
  ConfigNode choice = merged(inherited, node, "model.attention");
  choice.set_path(node.path());
  return choice;
}

/// Returns the node of the first of `options` that the choice has, or else the choice itself.
const ConfigNode& node_of_option(const ConfigNode& choice, std::initializer_list<const char*> options) {
  for (const char* option : options)
    if (const ConfigNode* given = choice.find(option)) return *given;
  return choice;
}

AttentionChoice make_choice(const ConfigNode& node, AttentionSite site, int64_t num_heads) {
  AttentionChoice choice;
  choice.type = make_attention_type(node, num_heads);
  if (site == AttentionSite::kCross && choice.type->entry().info.needs_distance)
    node_of_option(node, {"base", "type"})
        .fail(
            "a key's weight depends on its distance from the query, and on cross attention these stand in different sentences; give "
            "cross a type of its own: `cross: softmax`");
  if (site == AttentionSite::kCross && choice.type->needs_distance())
    node_of_option(node, {"pattern"})
        .fail(
            "this pattern looks at the distance between query and key, and on cross attention these stand in different sentences; give "
            "cross its own choice with `pattern: full`");
  if (site == AttentionSite::kEncoderSelf && choice.type->calibrated() != nullptr)
    node_of_option(node, {"type"})
        .fail(
            "its mask is trained by a second pass that starts at the decoder, so the encoder's self-attention cannot have one; give "
            "encoder_self its own choice, and calibrate cross or decoder_self");
  const ConfigNode* norm = node.is_map() ? node.find("norm") : nullptr;
  const ConfigNode default_norm = ConfigNode::scalar(choice.type->entry().info.default_norm);
  const ConfigNode& given = norm != nullptr ? *norm : default_norm;
  check_attention_norm(given);
  choice.norm = given.is_map() ? given.find("type")->text() : given.text();
  if (given.is_map()) {
    choice.norm_options = given;
    choice.norm_options.erase("type");
  }
  return choice;
}

/// The first choice that is calibrated.
struct FirstCalibrated {
  std::optional<CalibratedOptions> options;
  ConfigNode choice;
};

[[noreturn]] void refuse_other(const ConfigNode& choice, const ConfigNode& first, const char* option, const std::string& own,
                               const std::string& of_first) {
  const ConfigNode& said = node_of_option(first, {option});
  const std::string place = said.place().text(), at = said.path() + (place.empty() ? "" : " (" + place + ")");
  node_of_option(choice, {option})
      .fail(std::string(option) + " is " + own + " here and " + of_first + " at " + at +
            "; expected the same: a single mask pass trains all masks (mask_penalty may differ)");
}

/// Throws ConfigError if two calibrated layers do not train their masks alike: one mask pass trains them all.
void require_one_training(const ConfigNode& choice, const AttentionType& type, FirstCalibrated& first) {
  if (type.calibrated() == nullptr) return;
  const CalibratedOptions& own = *type.calibrated();
  if (!first.options) first = {own, choice};
  const auto [every, cap] = std::pair(first.options->mask_every, first.options->mask_loss_cap);
  if (own.mask_every != every) refuse_other(choice, first.choice, "mask_every", std::to_string(own.mask_every), std::to_string(every));
  if (own.mask_loss_cap != cap) refuse_other(choice, first.choice, "mask_loss_cap", write_double(own.mask_loss_cap), write_double(cap));
}

/// Returns the number of the layer that a key under `layers` names.
int64_t layer_of(const std::string& key, const ConfigNode& value, int64_t num_layers) {
  int64_t layer = -1;
  const auto end = key.data() + key.size();
  if (std::from_chars(key.data(), end, layer).ptr != end || layer < 0 || layer >= num_layers)
    value.fail("layer \"" + key + "\": expected a number from 0, the bottom layer, to " + std::to_string(num_layers - 1));
  return layer;
}

std::vector<AttentionChoice> resolve_site(const ConfigNode* node, const ConfigNode& fallback, AttentionSite site, int64_t num_layers,
                                          int64_t num_heads, FirstCalibrated& first) {
  ConfigNode chosen = fallback;
  const ConfigNode* layers = nullptr;
  if (node != nullptr && holds_layers(*node)) {
    refuse_unknown_keys(*node, {kDefault, kLayers}, {kDefault, kLayers});
    if (const ConfigNode* site_default = node->find(kDefault)) chosen = choice_over(fallback, *site_default);
    layers = node->find(kLayers);
  } else if (node != nullptr) {
    chosen = choice_over(fallback, *node);
  }
  std::vector<ConfigNode> nodes(static_cast<size_t>(num_layers), chosen);
  if (layers != nullptr) {
    if (!layers->is_map()) layers->fail("expected a map from layer numbers to attention types: {0: softmax}");
    std::vector<bool> is_named(nodes.size());
    for (const auto& [key, value] : layers->entries()) {
      const auto layer = static_cast<size_t>(layer_of(key, value, num_layers));
      if (is_named[layer]) value.fail("layer " + std::to_string(layer) + " is named twice, here as \"" + key + "\"; keep one of them");
      is_named[layer] = true;
      nodes[layer] = choice_over(chosen, value);
    }
  }
  std::vector<AttentionChoice> choices;
  choices.reserve(nodes.size());
  for (const ConfigNode& layer : nodes) {
    choices.push_back(make_choice(layer, site, num_heads));
    require_one_training(layer, *choices.back().type, first);
  }
  return choices;
}

}  // namespace

AttentionPlan resolve_attention(const ConfigNode& attention, int64_t encoder_layers, int64_t decoder_layers, int64_t num_heads) {
  ConfigNode fallback = ConfigNode::scalar("softmax");
  const ConfigNode* sites = nullptr;
  if (is_choice(attention)) {
    fallback = attention;
  } else if (!attention.is_null()) {
    std::vector<std::string> known = {kDefault};
    for (const AttentionSite site : kAttentionSites) known.push_back(name_of(site));
    std::vector<std::string> meant = known;
    meant.emplace_back("type");  // which would make it a choice
    refuse_unknown_keys(attention, known, meant);
    if (const ConfigNode* given = attention.find(kDefault)) fallback = choice_over(fallback, *given);
    sites = &attention;
  }
  FirstCalibrated first;
  const auto resolve = [&](AttentionSite site, int64_t layers) {
    return resolve_site(sites != nullptr ? sites->find(name_of(site)) : nullptr, fallback, site, layers, num_heads, first);
  };
  return {.encoder_self = resolve(AttentionSite::kEncoderSelf, encoder_layers),
          .decoder_self = resolve(AttentionSite::kDecoderSelf, decoder_layers),
          .cross = resolve(AttentionSite::kCross, decoder_layers)};
}

AttentionPlan resolve_attention(const ModelOptions& model) {
  return resolve_attention(model.attention, model.encoder_layers, model.decoder_layers, model.num_heads);
}

namespace {

/// Returns one choice as YAML, without the defaults: a pattern `full`, no norm.
ConfigNode described(const AttentionChoice& choice) {
  ConfigNode map = choice.type->description();
  if (map.find("pattern")->to_line() == "{type: full}") map.erase("pattern");
  if (choice.norm != "none") {
    ConfigNode norm = ConfigNode::map({{"type", ConfigNode::scalar(choice.norm)}});
    for (const auto& [key, value] : choice.norm_options.entries()) norm.set(key, value);
    map.set("norm", norm.entries().size() == 1 ? ConfigNode::scalar(choice.norm) : norm);
  }
  return map.entries().size() == 1 ? ConfigNode::scalar(choice.type->name()) : map;
}

/// Returns a site as YAML: one choice, or {0: ..., 1: ...} where its layers differ.
std::string described(const std::vector<AttentionChoice>& layers) {
  ConfigNode by_layer = ConfigNode::map({});
  bool is_one = true;
  for (size_t i = 0; i < layers.size(); ++i) {
    by_layer.set(std::to_string(i), described(layers[i]));
    is_one = is_one && by_layer.entries()[i].second.to_line() == by_layer.entries()[0].second.to_line();
  }
  return is_one ? by_layer.entries()[0].second.to_line() : by_layer.to_line();
}

/// Calls f(site, choices of the first, choices of the second) for each site.
template <class F>
void for_each_site(const AttentionPlan& first, const AttentionPlan& second, F f) {
  f(AttentionSite::kEncoderSelf, first.encoder_self, second.encoder_self);
  f(AttentionSite::kDecoderSelf, first.decoder_self, second.decoder_self);
  f(AttentionSite::kCross, first.cross, second.cross);
}

}  // namespace

PlanDifference difference(const AttentionPlan& first, const AttentionPlan& second) {
  PlanDifference found;
  for_each_site(first, second,
                [&](AttentionSite site, const std::vector<AttentionChoice>& ours, const std::vector<AttentionChoice>& theirs) {
                  const std::string one = described(ours), other = described(theirs), begin = found.first.empty() ? "" : ", ";
                  if (one == other) return;
                  found.first += begin + name_of(site) + ": " + one;
                  found.second += begin + name_of(site) + ": " + other;
                });
  return found;
}

std::string difference_in_units(const AttentionPlan& first, const AttentionPlan& second) {
  std::string found;
  for_each_site(
      first, second, [&](AttentionSite site, const std::vector<AttentionChoice>& ours, const std::vector<AttentionChoice>& theirs) {
        for (size_t i = 0; found.empty() && i < ours.size() && i < theirs.size(); ++i) {
          const AttentionType &one = *ours[i].type, &other = *theirs[i].type;
          if (&one.entry() != &other.entry()) continue;
          const std::string unit = one.entry().unit_of_numbers(one.options()), of_other = other.entry().unit_of_numbers(other.options());
          if (unit != of_other)
            found = std::string(name_of(site)) + "." + std::to_string(i) + ": " + one.entry().name + " of " + unit + " and " + of_other;
        }
      });
  return found;
}

}  // namespace lacuna
