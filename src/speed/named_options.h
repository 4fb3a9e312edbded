#pragma once

#include <string>

#include "config/options.h"

namespace lacuna {

/// A configuration with the name of its attention.
struct NamedOptions {
  std::string name;
  Options options;
};

/// Returns `options` with this model.attention. Throws ConfigError if the model cannot have it.
Options with_attention(const Options& options, const ConfigNode& attention);

/// Returns options that make every translation exactly `length` tokens long, eos included: all attentions then do the same number of steps
/// with full beams.
inline Options with_forced_length(Options options, int64_t length) {
  options.translate.min_length = options.translate.max_length = length;
  options.translate.n_best = 1;
  options.translate.sampling = Sampling::kNone;
  return options;
}

/// Lists the attention types, options and norms of all layers and sites, each once.
std::string attention_in_full(const Options& options);

}  // namespace lacuna
