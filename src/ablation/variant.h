#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/config_node.h"

namespace lacuna {

/// One system of an ablation: a name, and what it changes in the configuration that all share.
struct Variant {
  std::string name;
  ConfigNode overlay;               ///< a piece of configuration: model, train and translate
  std::vector<int64_t> seeds = {};  ///< its own; empty = those of the command line
  std::string against = {};         ///< the variant it is compared with; empty = the first
};

/// Reads variants from a map of names to what each changes, in its order:
///
///   softmax: softmax                                   # what stands under model.attention: a type,
///   top-8: {type: topk, k: 8}                          # a choice with options,
///   cross-only: {cross: rela}                          # or a map of sites
///   leaky: rela/leaky.yaml                             # a configuration file, relative to the file that says it
///   short: {attention: rela, train: {max_epochs: 6}, seeds: [1, 2], against: softmax}   # and more: extends, model, translate
///
/// Throws ConfigError for names that make no folder, unknown keys, keys that variants may not change, and an `against` that is not above.
std::vector<Variant> read_variants(const ConfigNode& map);
/// Name of the section of a configuration that defines variants.
inline constexpr char kVariantsKey[] = "variants";
/// Removes the section `variants` from a configuration and reads it. Empty if there is none.
std::vector<Variant> take_variants(ConfigNode& configuration);

/// Reads the variants that a flag of the command line asks for, in its order:
///
///   softmax,{type: topk, k: 4},topk: {k: 4},mine: {cross: rela},rela/leaky.yaml
///
/// A word is one of `defined`, or one of `known_types`, or a configuration file. Commas inside brackets or quotes separate nothing.
/// Throws UsageError or ConfigError, which name the flag.
std::vector<Variant> parse_variants(const std::string& text, const std::string& flag, const std::vector<Variant>& defined,
                                    const std::vector<std::string>& known_types);

/// Returns what stands under model.attention of a variant. Throws UsageError, which names the flag, if the variant changes anything else.
ConfigNode attention_of(const Variant& variant, const std::string& flag);

/// Returns a name for an attention choice that a folder can have: "topk-k=4" for {type: topk, k: 4}.
std::string name_of_choice(const ConfigNode& choice);

}  // namespace lacuna
