#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "config/option_help.h"

namespace lacuna {

/// Stands for a struct without options in read_options().
struct NoOptions {
  template <class Self, class Visitor>
  static void describe(Self& /*self*/, Visitor&& /*visit*/) {}
};

/// Reads the options of a type, pattern or norm from its map; an empty struct has none and needs no describe().
template <class Options>
Options read_own_options(const ConfigNode& node) {
  if constexpr (std::is_empty_v<Options>) {
    read_options<NoOptions>(node);
    return {};
  } else {
    return read_options<Options>(node);
  }
}

template <class Options>
std::vector<OptionHelp> own_options_help() {
  if constexpr (std::is_empty_v<Options>)
    return {};
  else
    return option_help<Options>();
}

template <class Options>
ConfigNode write_own_options(const Options& options) {
  if constexpr (std::is_empty_v<Options>) {
    return ConfigNode::map({});
  } else {
    return write_options(options);
  }
}

}  // namespace lacuna
