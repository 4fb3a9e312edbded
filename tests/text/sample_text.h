#pragma once

#include <string>

#include "base/random.h"

namespace lacuna {

/// Returns a few hundred lines of words that share stems and endings: enough to train a small vocabulary.
inline std::string sample_text(int lines = 400, uint64_t seed = 1) {
  constexpr const char* kStems[] = {"haus", "baum", "garten", "licht", "wasser", "stein", "blume", "vogel", "straße", "tür"};
  constexpr const char* kEnds[] = {"", "e", "en", "er", "es", "chen", "lein", "ung", "ig", "lich"};
  RandomStream random(seed);
  std::string text;
  for (int i = 0; i < lines; ++i) {
    for (uint64_t n = 3 + random.next_below(8); n > 0; --n) {
      const std::string end = kEnds[random.next_below(10)], stem = kStems[random.next_below(10)];  // drawn in this order by every compiler
      text += stem + end + (n > 1 ? " " : "\n");
    }
  }
  return text;
}

}  // namespace lacuna
