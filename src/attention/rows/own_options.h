#pragma once

#include <string>
#include <type_traits>

#include "config/help_writer.h"

namespace lacuna {

struct NoOptions {
  template <class Self, class Visitor>
  static void describe(Self& /*self*/, Visitor&& /*visit*/) {}
};

/// Options of a type, pattern or norm: an empty struct has none and needs no describe().
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
std::string own_options_help() {
  HelpWriter help("    ");
  if constexpr (!std::is_empty_v<Options>) help.add("", Options());
  return help.text();
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
