#include "data/lexicon.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/random.h"

namespace lacuna {
namespace {

using Ids = std::vector<TokenId>;

constexpr TokenId kDas = 3, kHaus = 4, kBuch = 5, kEin = 6;
constexpr TokenId kThe = 3, kHouse = 4, kBook = 5, kA = 6;

/// "das Haus", "das Buch", "ein Buch" (Koehn's example).
TokenPairs toy_pairs() {
  TokenPairs pairs;
  pairs.add(Ids{kDas, kHaus}, Ids{kThe, kHouse});
  pairs.add(Ids{kDas, kBuch}, Ids{kThe, kBook});
  pairs.add(Ids{kEin, kBuch}, Ids{kA, kBook});
  return pairs;
}

float probability(const Lexicon& lexicon, TokenId src, TokenId tgt) {
  for (const LexiconEntry& entry : lexicon[static_cast<size_t>(src)])
    if (entry.tgt == tgt) return entry.probability;
  return 0;
}

/// The same by the book: every t in a table.
std::vector<std::vector<double>> by_the_book(const TokenPairs& pairs, size_t size, int iterations) {
  std::vector<std::vector<double>> t(size, std::vector<double>(size, 1));
  for (int iteration = 0; iteration < iterations; ++iteration) {
    std::vector<std::vector<double>> counts(size, std::vector<double>(size));
    for (size_t pair = 0; pair + 1 < pairs.src_begin.size(); ++pair) {
      Ids src = {kBos};
      src.insert(src.end(), pairs.src.begin() + pairs.src_begin[pair], pairs.src.begin() + pairs.src_begin[pair + 1]);
      for (int64_t j = pairs.tgt_begin[pair]; j < pairs.tgt_begin[pair + 1]; ++j) {
        const auto f = static_cast<size_t>(pairs.tgt[static_cast<size_t>(j)]);
        double sum = 0;
        for (const TokenId e : src) sum += t[static_cast<size_t>(e)][f];
        for (const TokenId e : src) counts[static_cast<size_t>(e)][f] += t[static_cast<size_t>(e)][f] / sum;
      }
    }
    for (size_t e = 0; e < size; ++e) {
      double total = 0;
      for (const double count : counts[e]) total += count;
      for (size_t f = 0; f < size; ++f) t[e][f] = total > 0 ? counts[e][f] / total : 0;
    }
  }
  return t;
}

TokenPairs random_pairs(uint64_t seed, uint64_t vocab_size) {
  RandomStream random(seed);
  TokenPairs pairs;
  for (int i = 0; i < 200; ++i) {
    Ids src, tgt;
    for (uint64_t n = random.next_below(8); n > 0; --n) src.push_back(static_cast<TokenId>(3 + random.next_below(vocab_size - 3)));
    for (uint64_t n = random.next_below(8); n > 0; --n) tgt.push_back(static_cast<TokenId>(3 + random.next_below(vocab_size - 3)));
    pairs.add(src, tgt);
  }
  return pairs;
}

TEST(Lexicon, OneIterationSharesEachTokenAmongItsSources) {
  const Lexicon lexicon = learn_lexicon(toy_pairs(), {.src_size = 7, .tgt_size = 7, .iterations = 1});
  EXPECT_EQ(lexicon[kDas], (std::vector<LexiconEntry>{{kThe, .5f}, {kHouse, .25f}, {kBook, .25f}}));
  EXPECT_EQ(lexicon[kHaus], (std::vector<LexiconEntry>{{kThe, .5f}, {kHouse, .5f}}));
  EXPECT_TRUE(lexicon[kBos].empty());
}

TEST(Lexicon, LearnsWhichWordTranslatesWhich) {
  const Lexicon lexicon = learn_lexicon(toy_pairs(), {.src_size = 7, .tgt_size = 7, .iterations = 20});
  EXPECT_EQ(lexicon[kDas].front().tgt, kThe);
  EXPECT_EQ(lexicon[kHaus].front().tgt, kHouse);
  EXPECT_EQ(lexicon[kBuch].front().tgt, kBook);
  EXPECT_EQ(lexicon[kEin].front().tgt, kA);
}

TEST(Lexicon, IsThatOfATableOfAllPairs) {
  constexpr size_t kSize = 20;
  const TokenPairs pairs = random_pairs(1, kSize);
  const Lexicon lexicon = learn_lexicon(pairs, {.src_size = kSize, .tgt_size = kSize, .iterations = 4});
  const auto expected = by_the_book(pairs, kSize, 4);
  for (TokenId e = 3; e < static_cast<TokenId>(kSize); ++e)
    for (TokenId f = 0; f < static_cast<TokenId>(kSize); ++f)
      EXPECT_NEAR(probability(lexicon, e, f), expected[static_cast<size_t>(e)][static_cast<size_t>(f)], 1e-5) << e << " " << f;
}

TEST(Lexicon, HasTheSameBitsForAnyNumberOfThreads) {
  const TokenPairs pairs = random_pairs(2, 50);
  const Lexicon one = learn_lexicon(pairs, {.src_size = 50, .tgt_size = 50, .kept = 10, .threads = 1});
  for (const int64_t threads : {2, 7, 300})
    EXPECT_EQ(learn_lexicon(pairs, {.src_size = 50, .tgt_size = 50, .kept = 10, .threads = threads}), one) << threads;
}

TEST(Lexicon, KeepsTheLikeliest) {
  const TokenPairs pairs = random_pairs(3, 50);
  const Lexicon lexicon = learn_lexicon(pairs, {.src_size = 50, .tgt_size = 50, .kept = 5});
  for (size_t e = 3; e < 50; ++e) {
    EXPECT_LE(lexicon[e].size(), 5u);
    for (size_t i = 1; i < lexicon[e].size(); ++i) EXPECT_GE(lexicon[e][i - 1].probability, lexicon[e][i].probability);
  }
}

TEST(Lexicon, OfNothingIsAnError) {
  EXPECT_THROW(learn_lexicon({}, {.src_size = 7, .tgt_size = 7}), DataError);
}

TEST(LinkedTokenCounts, GiveTheShareOfEachLink) {
  LinkedTokenCounts counts(5);
  for (const TokenId tgt : {7, 8, 7, 9, 7}) counts.add(4, tgt);
  EXPECT_EQ(counts.lexicon(2), (Lexicon{{}, {}, {}, {}, {{7, .6f}, {8, .2f}}}));
}

}  // namespace
}  // namespace lacuna
