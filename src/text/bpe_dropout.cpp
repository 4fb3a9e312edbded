#include "text/bpe_dropout.h"

#include "base/random.h"

namespace lacuna {
namespace {

std::vector<std::string> characters(const std::string& text) {
  std::vector<std::string> result;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0u) != 0x80u || result.empty()) result.emplace_back();
    result.back() += c;
  }
  return result;
}

}  // namespace

std::vector<std::string> bpe_with_dropout(const std::string& text, const std::function<std::optional<float>(const std::string&)>& score_of,
                                          double dropout, uint64_t random_key) {
  std::vector<std::string> pieces = characters(text);
  std::vector<std::optional<float>> scores;  // of merging piece i with the next
  for (size_t i = 0; i + 1 < pieces.size(); ++i) scores.push_back(score_of(pieces[i] + pieces[i + 1]));
  RandomStream random(random_key);
  for (;;) {
    std::optional<size_t> best;
    for (size_t i = 0; i < scores.size(); ++i)
      if (scores[i] && random.next_unit() >= dropout && (!best || *scores[i] > *scores[*best])) best = i;
    if (!best) return pieces;
    pieces[*best] += pieces[*best + 1];
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(*best) + 1);
    scores.erase(scores.begin() + static_cast<std::ptrdiff_t>(*best));
    if (*best > 0) scores[*best - 1] = score_of(pieces[*best - 1] + pieces[*best]);
    if (*best + 1 < pieces.size()) scores[*best] = score_of(pieces[*best] + pieces[*best + 1]);
  }
}

}  // namespace lacuna
