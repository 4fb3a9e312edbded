#include "data/word_aligner.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <numeric>

namespace lacuna {
namespace {

constexpr int kIterations = 5;           // of each model
constexpr int64_t kTranslations = 200;   // of a word that are kept
constexpr double kShareOfNone = 0.2;     // of target words that no source word generates
constexpr double kShareOfAnyJump = 0.1;  // of jumps that go anywhere alike
constexpr double kUnseen = 1e-7;         // probability of a translation that the lexicon lacks

/// Returns the word in lower case, without what is neither letter nor digit at its ends; in lower case alone, if nothing else is left.
std::string key_of(std::string_view word) {
  std::string lower, bare;
  size_t bare_end = 0;  // of `bare`, behind its last letter or digit
  const auto* const bytes = reinterpret_cast<const uint8_t*>(word.data());
  for (int32_t i = 0, size = static_cast<int32_t>(word.size()); i < size;) {
    UChar32 character = 0;
    U8_NEXT(bytes, i, size, character);
    if (character < 0) continue;
    const UChar32 small = u_tolower(character);
    uint8_t encoded[U8_MAX_LENGTH];
    int32_t length = 0;
    U8_APPEND_UNSAFE(encoded, length, small);
    const std::string_view letter(reinterpret_cast<const char*>(encoded), static_cast<size_t>(length));
    lower += letter;
    const bool is_inside = u_isalnum(small) != 0;
    if (is_inside || !bare.empty()) bare += letter;
    if (is_inside) bare_end = bare.size();
  }
  bare.resize(bare_end);
  return bare.empty() ? lower : bare;
}

/// Returns the place of a jump's width among the widths that are told apart.
size_t width_of_jump(size_t from, size_t to) {
  const auto width = static_cast<int64_t>(to) - static_cast<int64_t>(from);
  return static_cast<size_t>(std::clamp<int64_t>(width, -WordAligner::kFarthest, WordAligner::kFarthest) + WordAligner::kFarthest);
}

}  // namespace

std::vector<TokenId> WordIds::add(std::string_view line) {
  std::vector<TokenId> ids;
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    if (end > begin) {
      const auto next = static_cast<TokenId>(size());
      ids.push_back(ids_.try_emplace(key_of(line.substr(begin, end - begin)), next).first->second);
    }
    begin = end + 1;
  }
  return ids;
}

/// Forward and backward over the places of one pair: I source words, J target words. A state is a place, and whether its word generated the
/// target word; both go on alike. Each step's masses sum to 1.
struct WordAligner::Lattice {
  size_t I, J;
  std::vector<double> jumps;        ///< [I + 1, I] from each place to each; row 0 is from the beginning
  std::vector<int64_t> entries;     ///< [J, I] of the lexicon, -1 = none
  std::vector<double> emission;     ///< [J, I] of target word by source word, and that a word did generate it
  std::vector<double> of_none;      ///< [J] of target word by none
  std::vector<double> word, none;   ///< [J, I] forward masses; at the end, of all that the pair says
  std::vector<double> back, scale;  ///< [J, I], [J]

  double mass(size_t j, size_t i) const { return word[j * I + i] + none[j * I + i]; }

  void go_forward() {
    for (size_t j = 0; j < J; ++j) {
      for (size_t i = 0; i < I; ++i) {
        double reached = j == 0 ? jumps[i] : 0;
        for (size_t k = 0; j > 0 && k < I; ++k) reached += mass(j - 1, k) * jumps[(k + 1) * I + i];
        word[j * I + i] = reached * emission[j * I + i];
        none[j * I + i] = of_none[j] * (j == 0 ? 1 / static_cast<double>(I) : mass(j - 1, i));
        scale[j] += mass(j, i);
      }
      for (size_t i = 0; i < I; ++i) {
        word[j * I + i] /= scale[j];
        none[j * I + i] /= scale[j];
      }
    }
  }

  /// Calls see_jump(from, to, expected number) for jumps between places; masses become what the whole pair says.
  template <class See>
  void go_back(const See& see_jump) {
    for (size_t j = J - 1; j > 0; --j)
      for (size_t k = 0; k < I; ++k) {
        double ahead = of_none[j] * back[j * I + k];
        for (size_t i = 0; i < I; ++i) {
          const double step = jumps[(k + 1) * I + i] * emission[j * I + i] * back[j * I + i];
          ahead += step;
          see_jump(k, i, mass(j - 1, k) * step / scale[j]);
        }
        back[(j - 1) * I + k] = ahead / scale[j];
      }
    for (size_t at = 0; at < J * I; ++at) {
      word[at] *= back[at];
      none[at] *= back[at];
    }
  }
};

WordAligner::WordAligner(const TokenPairs& pairs, int64_t src_size, int64_t tgt_size, int64_t threads) {
  const Lexicon lexicon = learn_lexicon(
      pairs, {.src_size = src_size, .tgt_size = tgt_size, .iterations = kIterations, .kept = kTranslations, .threads = threads});
  begin_ = {0};
  begin_.reserve(lexicon.size() + 1);
  for (std::vector<LexiconEntry> entries : lexicon) {
    std::ranges::sort(entries, {}, &LexiconEntry::tgt);
    for (const LexiconEntry& entry : entries) {
      tgt_.push_back(entry.tgt);
      probabilities_.push_back(entry.probability);
    }
    begin_.push_back(static_cast<int64_t>(tgt_.size()));
  }
  of_none_.assign(static_cast<size_t>(tgt_size), 0);
  for (const TokenId word : pairs.tgt) of_none_[static_cast<size_t>(word)] += 1 / static_cast<double>(pairs.tgt.size());
  jumps_.fill(1);
  const auto part = [](const std::vector<TokenId>& ids, const std::vector<int64_t>& begin, size_t pair) {
    return std::span(ids).subspan(static_cast<size_t>(begin[pair]), static_cast<size_t>(begin[pair + 1] - begin[pair]));
  };
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    Counts counts = {std::vector<double>(tgt_.size()), std::vector<double>(of_none_.size()), {}};
    for (size_t pair = 0; pair < static_cast<size_t>(pairs.size()); ++pair)
      count(part(pairs.src, pairs.src_begin, pair), part(pairs.tgt, pairs.tgt_begin, pair), counts);
    improve(counts);
  }
}

/// Sets probabilities to shares of what was counted.
void WordAligner::improve(const Counts& counts) {
  for (size_t e = 0; e + 1 < begin_.size(); ++e) {
    const auto begin = static_cast<size_t>(begin_[e]), end = static_cast<size_t>(begin_[e + 1]);
    double total = 0;
    for (size_t i = begin; i < end; ++i) total += counts.translations[i];
    for (size_t i = begin; total > 0 && i < end; ++i) probabilities_[i] = counts.translations[i] / total;
  }
  double total = 0;
  for (const double count : counts.of_none) total += count;
  for (size_t f = 0; total > 0 && f < of_none_.size(); ++f) of_none_[f] = counts.of_none[f] / total;
  for (size_t width = 0; width < jumps_.size(); ++width) jumps_[width] = counts.jumps[width] + 1;  // each was seen once more
}

/// Returns the place of a translation, -1 if the lexicon lacks it.
int64_t WordAligner::entry_of(TokenId src, TokenId tgt) const {
  const auto begin = tgt_.begin() + begin_[static_cast<size_t>(src)], end = tgt_.begin() + begin_[static_cast<size_t>(src) + 1];
  const auto found = std::lower_bound(begin, end, tgt);
  return found != end && *found == tgt ? found - tgt_.begin() : -1;
}

WordAligner::Lattice WordAligner::lattice(std::span<const TokenId> src, std::span<const TokenId> tgt) const {
  const size_t I = src.size(), J = tgt.size();
  Lattice lattice = {I,
                     J,
                     std::vector<double>((I + 1) * I),
                     std::vector<int64_t>(J * I),
                     std::vector<double>(J * I),
                     std::vector<double>(J),
                     std::vector<double>(J * I),
                     std::vector<double>(J * I),
                     std::vector<double>(J * I, 1),
                     std::vector<double>(J)};
  for (size_t from = 0; from <= I; ++from) {
    double total = 0;
    for (size_t to = 0; to < I; ++to) total += jumps_[width_of_jump(from, to + 1)];
    for (size_t to = 0; to < I; ++to)
      lattice.jumps[from * I + to] =
          (1 - kShareOfAnyJump) * jumps_[width_of_jump(from, to + 1)] / total + kShareOfAnyJump / static_cast<double>(I);
  }
  for (size_t j = 0; j < J; ++j) {
    lattice.of_none[j] = kShareOfNone * std::max(of_none_[static_cast<size_t>(tgt[j])], kUnseen);
    for (size_t i = 0; i < I; ++i) {
      const int64_t entry = lattice.entries[j * I + i] = entry_of(src[i], tgt[j]);
      const double probability = entry >= 0 ? probabilities_[static_cast<size_t>(entry)] : 0;
      lattice.emission[j * I + i] = (1 - kShareOfNone) * std::max(probability, kUnseen);
    }
  }
  lattice.go_forward();
  return lattice;
}

/// Adds to `counts` what a pair says.
void WordAligner::count(std::span<const TokenId> src, std::span<const TokenId> tgt, Counts& counts) const {
  if (src.empty() || tgt.empty()) return;
  Lattice found = lattice(src, tgt);
  found.go_back([&](size_t from, size_t to, double number) { counts.jumps[width_of_jump(from, to)] += number; });
  for (size_t j = 0; j < found.J; ++j)
    for (size_t at = j * found.I; at < (j + 1) * found.I; ++at) {
      if (found.entries[at] >= 0) counts.translations[static_cast<size_t>(found.entries[at])] += found.word[at];
      counts.of_none[static_cast<size_t>(tgt[j])] += found.none[at];
    }
}

WordLinks WordAligner::align(std::span<const TokenId> src, std::span<const TokenId> tgt) const {
  if (src.empty() || tgt.empty()) return {};
  Lattice found = lattice(src, tgt);
  found.go_back([](size_t, size_t, double) {});
  WordLinks links;
  for (size_t j = 0; j < found.J; ++j) {
    const auto row = found.word.begin() + static_cast<std::ptrdiff_t>(j * found.I), end = row + static_cast<std::ptrdiff_t>(found.I);
    const auto none = found.none.begin() + static_cast<std::ptrdiff_t>(j * found.I);
    const auto best = std::max_element(row, end);
    if (*best > std::accumulate(none, none + static_cast<std::ptrdiff_t>(found.I), 0.0))
      links.emplace_back(static_cast<int32_t>(best - row), static_cast<int32_t>(j));
  }
  return links;
}

}  // namespace lacuna
