#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"

namespace lacuna {

/// Segments a line by BPE-dropout (Provilkov et al. 2020, arXiv:1910.13267): adjacent symbols (characters at first) are
/// merged into pieces, the pair with the highest score first and the leftmost among equals, but in each round every
/// possible merge is dropped with probability `dropout`; a round that drops all merges is the last. `score_of` returns
/// the score of a piece, or nothing if it is not in the vocabulary.
inline std::vector<std::string> bpe_with_dropout(std::vector<std::string> symbols,
                                                 const std::function<std::optional<float>(const std::string&)>& score_of, double dropout,
                                                 uint64_t random_key) {
  std::vector<std::optional<float>> scores;  // score of merging symbol i with the next
  for (size_t i = 0; i + 1 < symbols.size(); ++i) scores.push_back(score_of(symbols[i] + symbols[i + 1]));
  RandomStream random(random_key);
  for (;;) {
    std::optional<size_t> best;
    for (size_t i = 0; i < scores.size(); ++i)
      if (scores[i] && random.next_unit() >= dropout && (!best || *scores[i] > *scores[*best])) best = i;
    if (!best) return symbols;
    symbols[*best] += symbols[*best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(*best) + 1);
    scores.erase(scores.begin() + static_cast<std::ptrdiff_t>(*best));
    if (*best > 0) scores[*best - 1] = score_of(symbols[*best - 1] + symbols[*best]);
    if (*best + 1 < symbols.size()) scores[*best] = score_of(symbols[*best] + symbols[*best + 1]);
  }
}

}  // namespace lacuna
