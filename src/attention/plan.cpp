#include <algorithm>
#include <charconv>

#include "attention/attention.h"
#include "attention/norm.h"
#include "attention/registry.h"
#include "base/spelling.h"

namespace lacuna {
namespace {

constexpr const char* kDefault = "default";
constexpr const char* kLayers = "layers";

/// True for what names one choice: a bare word, or a map with `type`.
bool is_choice(const ConfigNode& node) {
  return node.is_scalar() || (node.is_map() && node.find("type") != nullptr);
}

void refuse_unknown_keys(const ConfigNode& map, const std::vector<std::string>& known) {
  if (!map.is_map()) map.fail("expected an attention type, or a map of " + join(known));
  for (const auto& [key, value] : map.entries())
    if (std::find(known.begin(), known.end(), key) == known.end())
      value.fail("unknown key; known here: " + join(known) + did_you_mean(key, known));
}

AttentionChoice make_choice(const ConfigNode& node, AttentionSite site, int64_t num_heads) {
  AttentionChoice choice;
  choice.type = make_attention_type(node, num_heads);
  if (site == AttentionSite::kCross && choice.type->entry().info.needs_distance)
    node.fail(
        "a key's weight depends on its distance from the query, and on cross attention these stand in different sentences; give "
        "cross a type of its own: `cross: softmax`");
  if (site == AttentionSite::kCross && choice.type->needs_distance())
    node.fail(
        "this pattern looks at the distance between query and key, and on cross attention these stand in different sentences; give cross "
        "its own choice with `pattern: full`");
  if (site == AttentionSite::kEncoderSelf && choice.type->takes_mask())
    node.fail(
        "its mask is trained by a second pass that starts at the decoder, so the encoder's self-attention cannot have one; give "
        "encoder_self its own choice, and calibrate cross or decoder_self");
  const ConfigNode* norm = node.is_map() ? node.find("norm") : nullptr;
  const ConfigNode default_norm = ConfigNode::scalar(choice.type->of_scores().entry().info.default_norm);
  const ConfigNode& given = norm != nullptr ? *norm : default_norm;
  const ConfigNode* type = given.is_map() ? given.find("type") : &given;
  if (type == nullptr || !type->is_scalar()) given.fail("expected the name of a norm, or a map with `type`");
  check_attention_norm(given);
  choice.norm = type->text();
  if (given.is_map()) {
    choice.norm_options = given;
    choice.norm_options.erase("type");
  }
  return choice;
}

/// The number of the layer that a key under `layers` names.
int64_t layer_of(const std::string& key, const ConfigNode& value, int64_t num_layers) {
  int64_t layer = -1;
  const auto end = key.data() + key.size();
  if (std::from_chars(key.data(), end, layer).ptr != end || layer < 0 || layer >= num_layers)
    value.fail("layer \"" + key + "\": expected a number from 0, the bottom layer, to " + std::to_string(num_layers - 1));
  return layer;
}

std::vector<AttentionChoice> resolve_site(const ConfigNode* node, const ConfigNode& fallback, AttentionSite site, int64_t num_layers,
                                          int64_t num_heads) {
  const ConfigNode* chosen = &fallback;
  const ConfigNode* layers = nullptr;
  if (node != nullptr && is_choice(*node)) {
    chosen = node;
  } else if (node != nullptr) {
    refuse_unknown_keys(*node, {kDefault, kLayers});
    if (const ConfigNode* site_default = node->find(kDefault)) chosen = site_default;
    layers = node->find(kLayers);
  }
  std::vector<const ConfigNode*> nodes(static_cast<size_t>(num_layers), chosen);
  if (layers != nullptr) {
    if (!layers->is_map()) layers->fail("expected a map from layer numbers to attention types: {0: softmax}");
    for (const auto& [key, value] : layers->entries()) nodes[static_cast<size_t>(layer_of(key, value, num_layers))] = &value;
  }
  std::vector<AttentionChoice> choices;
  for (const ConfigNode* layer : nodes) choices.push_back(make_choice(*layer, site, num_heads));
  return choices;
}

/// Notes how the choice's mask is trained, if it has one. The mask pass is one for the whole model, so the layers must agree on it.
void note_mask(const AttentionChoice& choice, std::optional<MaskTraining>& masks) {
  if (!choice.type->takes_mask()) return;
  const MaskTraining own = choice.type->mask_training();
  if (!masks) masks = own;
  if (own.every != masks->every || own.loss_cap != masks->loss_cap)
    throw ConfigError("model.attention: mask_every and mask_loss_cap differ between layers; expected the same ones wherever the type is " +
                      choice.type->name() + ": a single mask pass trains all masks (mask_penalty may differ)");
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
    refuse_unknown_keys(attention, known);
    if (const ConfigNode* given = attention.find(kDefault)) fallback = *given;
    sites = &attention;
  }
  const auto resolve = [&](AttentionSite site, int64_t layers) {
    return resolve_site(sites != nullptr ? sites->find(name_of(site)) : nullptr, fallback, site, layers, num_heads);
  };
  AttentionPlan plan = {.encoder_self = resolve(AttentionSite::kEncoderSelf, encoder_layers),
                        .decoder_self = resolve(AttentionSite::kDecoderSelf, decoder_layers),
                        .cross = resolve(AttentionSite::kCross, decoder_layers)};
  for (const auto* site : {&plan.decoder_self, &plan.cross})
    for (const AttentionChoice& choice : *site) note_mask(choice, plan.masks);
  return plan;
}

}  // namespace lacuna
