#pragma once

#include <string>

#include "config/options.h"

namespace lacuna {

/// A whole configuration, by the name of its attention.
struct NamedOptions {
  std::string name;
  Options options;
};

/// `options` with this under model.attention. Throws ConfigError where it has no meaning in the model.
Options with_attention(const Options& options, const ConfigNode& attention);

/// Types, options and norms of all layers and sites, each once.
std::string attention_in_full(const Options& options);

}  // namespace lacuna
