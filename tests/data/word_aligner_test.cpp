#include "data/word_aligner.h"

#include <gmock/gmock.h>

#include <map>

#include "base/random.h"

namespace lacuna {
namespace {

using testing::ElementsAre;

TEST(WordIds, AreOfWordsInLowerCaseWithoutPunctuationAround) {
  WordIds words;
  const std::vector<TokenId> ids = words.add("Das  Haus, (haus) Übel -- ÜBEL. 3%");
  ASSERT_EQ(ids.size(), 7U);
  EXPECT_EQ(ids[1], ids[2]);
  EXPECT_EQ(ids[3], ids[5]);
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_EQ(words.size(), 8);  // das, haus, übel, --, 3, behind the special ones
  EXPECT_TRUE(words.add("").empty());
}

/// Sentences of words of which each has one translation, which stands at the mirrored place; 9 at the end of a target has no source.
struct MirrorText {
  explicit MirrorText(int sentences) {
    RandomStream random(4);
    for (int i = 0; i < sentences; ++i) {
      std::vector<TokenId> src, tgt;
      for (uint64_t n = 2 + random.next_below(5); n > 0; --n) src.push_back(static_cast<TokenId>(3 + random.next_below(40)));
      for (size_t k = src.size(); k-- > 0;) tgt.push_back(src[k] + 7);
      if (random.next_below(2) == 0) tgt.push_back(9);
      pairs.add(src, tgt);
    }
  }
  TokenPairs pairs;
};

TEST(WordAligner, FindsTranslationsAndJumps) {
  const MirrorText text(300);
  const WordAligner aligner(text.pairs, 50, 60, 1);
  EXPECT_THAT(aligner.align(std::vector<TokenId>{5, 6, 7}, std::vector<TokenId>{14, 13, 12}),
              ElementsAre(WordLink(2, 0), WordLink(1, 1), WordLink(0, 2)));
  EXPECT_THAT(aligner.align(std::vector<TokenId>{5, 6}, std::vector<TokenId>{13, 12, 9}), ElementsAre(WordLink(1, 0), WordLink(0, 1)));
  // Of two words alike, the one where the order of others leads is the right one.
  EXPECT_THAT(aligner.align(std::vector<TokenId>{5, 8, 5}, std::vector<TokenId>{12, 15, 12}),
              ElementsAre(WordLink(2, 0), WordLink(1, 1), WordLink(0, 2)));
  EXPECT_TRUE(aligner.align(std::vector<TokenId>{}, std::vector<TokenId>{12}).empty());
  EXPECT_TRUE(aligner.align(std::vector<TokenId>{5}, std::vector<TokenId>{}).empty());
}

TEST(WordAligner, DoesNotDependOnThreads) {
  const MirrorText text(50);
  const WordAligner one(text.pairs, 50, 60, 1), three(text.pairs, 50, 60, 3);
  RandomStream random(7);
  for (int i = 0; i < 20; ++i) {
    std::vector<TokenId> src, tgt;
    for (int n = 0; n < 6; ++n) {
      src.push_back(static_cast<TokenId>(3 + random.next_below(40)));
      tgt.push_back(static_cast<TokenId>(10 + random.next_below(40)));
    }
    EXPECT_EQ(one.align(src, tgt), three.align(src, tgt));
  }
}

}  // namespace
}  // namespace lacuna
