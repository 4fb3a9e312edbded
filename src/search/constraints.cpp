#include "search/constraints.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace lacuna {
namespace {

constexpr int64_t kSparedTokens = 10;  // a short source may have a longer translation than the ratio says

std::vector<TokenId> ids_of(const std::vector<std::string>& pieces, const Vocabulary& tgt) {
  std::vector<TokenId> ids;
  for (const std::string& piece : pieces) {
    const TokenId id = tgt.id_of(piece);
    if (id == kUnk && piece != tgt.piece(kUnk))
      throw DataError("translate.block_tokens holds \"" + piece +
                      "\", which is not a piece of the target vocabulary; pieces at the start of a word begin with \xE2\x96\x81");
    ids.push_back(id);
  }
  return ids;
}

void add_once(std::vector<TokenId>& ids, TokenId id) {
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

}  // namespace

Constraints::Constraints(const TranslateOptions& options, const Vocabulary& tgt)
    : Constraints(options, ids_of(options.block_tokens, tgt)) {}

Constraints::Constraints(const TranslateOptions& options, const std::vector<TokenId>& blocked) : options_(options), always_({kBos}) {
  if (!options.allow_unk) always_.push_back(kUnk);
  for (const TokenId id : blocked) add_once(always_, id);
}

std::vector<TokenId> Constraints::blocked_after(const Hypothesis& hypothesis) const {
  std::vector<TokenId> blocked = always_;
  const auto& tokens = hypothesis.tokens;
  if (hypothesis.length() + 1 < options_.min_length) add_once(blocked, kEos);
  const auto n = static_cast<size_t>(options_.no_repeat_ngram_size);
  if (n == 0 || tokens.size() + 1 < n) return blocked;
  const auto context = tokens.end() - static_cast<std::ptrdiff_t>(n - 1);
  for (size_t i = 0; i + n <= tokens.size(); ++i)
    if (std::equal(context, tokens.end(), tokens.begin() + static_cast<std::ptrdiff_t>(i))) add_once(blocked, tokens[i + n - 1]);
  return blocked;
}

int64_t Constraints::max_blocked(int64_t length) const {
  const int64_t repeats = options_.no_repeat_ngram_size > 0 ? std::max<int64_t>(0, length - options_.no_repeat_ngram_size + 1) : 0;
  return static_cast<int64_t>(always_.size()) + 1 + repeats;
}

int64_t length_limit(const TranslateOptions& options, const SearchInput& input, int64_t max_positions) {
  const double by_ratio = std::ceil(options.max_length_ratio * static_cast<double>(input.src.size())) + kSparedTokens;
  const double wanted = std::max(static_cast<double>(options.min_length), static_cast<double>(input.prefix.size()) + by_ratio);
  constexpr double kMost = 1e6;  // "no limit" and a huge ratio fit no integer
  const auto limit = static_cast<int64_t>(std::min({static_cast<double>(options.max_length), wanted, kMost}));
  return max_positions > 0 ? std::min(limit, max_positions) : limit;
}

TokenId forced_after(const Hypothesis& hypothesis, const SearchInput& input, int64_t limit) {
  const int64_t length = hypothesis.length();
  if (length + 1 >= limit) return kEos;
  return length < std::ssize(input.prefix) ? input.prefix[static_cast<size_t>(length)] : kNotForced;
}

}  // namespace lacuna
