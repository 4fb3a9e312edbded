#pragma once

#include <string>
#include <vector>

#include "config/config_node.h"

namespace lacuna {

/// One of several attentions that a command line names to be compared.
struct AttentionVariant {
  std::string name;      ///< a type's name as it was given, or a map in YAML's flow style
  ConfigNode attention;  ///< what `model.attention` is then
};

/// Reads a list with commas between its entries, each a type's name or a flow-style map of what `model.attention` may be:
///
///   topk,{type: entmax, alpha: learned},{encoder_self: rela, cross: softmax}
///
/// `place` is the flag that errors name. Throws ConfigError for what is not such a list, for an empty one and for an entry that is there
/// twice. Whether types and options exist is not checked here.
std::vector<AttentionVariant> read_attention_variants(const std::string& text, const std::string& place);

}  // namespace lacuna
