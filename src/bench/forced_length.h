#pragma once

#include "config/options.h"

namespace lacuna {

/// Options by which every translation gets exactly `length` tokens, eos counted: all attentions then do the same number of steps with full
/// beams, whatever they would say.
inline Options with_forced_length(Options options, int64_t length) {
  options.translate.min_length = options.translate.max_length = length;
  options.translate.n_best = 1;
  options.translate.sampling = Sampling::kNone;
  return options;
}

}  // namespace lacuna
