#include "text/bpe_dropout.h"

#include "base/random.h"

namespace lacuna {

std::vector<std::string> bpe_with_dropout(std::vector<std::string> symbols,
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
