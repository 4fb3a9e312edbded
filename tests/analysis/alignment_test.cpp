#include "../base/scratch_folder.h"
#include "analysis/alignment_error.h"
#include "analysis/explored_sentence.h"
#include "analysis/word_weights.h"
#include "base/error.h"
#include "golden.h"

namespace lacuna {
namespace {

/// Three source pieces of two words and eos; two target pieces, each a word, and eos.
const AlignmentUnits kUnits = {.src = {0, 0, 1}, .tgt = {0, 1}, .src_count = 2, .tgt_count = 2};

/// One head. Step by step: predicts target 0, predicts target 1 (having read 0), predicts eos (having read 1).
SentenceWeights one_head() {
  return SentenceWeights(json::parse("[[[0.25, 0.25, 0.375, 0.125], [0, 0.125, 0.5, 0.375], [0, 0, 0, 1]]]"), 0, AttentionSite::kCross);
}

TEST(WordWeights, SumColumnsOfASourceWordAndLeaveEosOut) {
  const SentenceWeights head = one_head();
  const UnitWeights weights(head.call().weights.matrix(0, 0), kUnits, AlignmentStep::kNormal);
  EXPECT_DOUBLE_EQ(weights.at(0, 0), .5);
  EXPECT_DOUBLE_EQ(weights.at(0, 1), .375);
  EXPECT_DOUBLE_EQ(weights.at(1, 0), .125);
  EXPECT_EQ(weights.links(), (Links{{0, 0}, {1, 1}}));
}

TEST(WordWeights, ShiftedAreThoseOfTheStepThatReadsTheWordAndAWordWithoutWeightHasNoLink) {
  const SentenceWeights head = one_head();
  const UnitWeights weights(head.call().weights.matrix(0, 0), kUnits, AlignmentStep::kShifted);
  EXPECT_DOUBLE_EQ(weights.at(0, 0), .125);
  EXPECT_DOUBLE_EQ(weights.at(0, 1), .5);
  EXPECT_EQ(weights.links(), (Links{{1, 0}}));  // the last step looks at eos alone
}

TEST(WordWeights, AverageRowsOfATargetWord) {
  const SentenceWeights head = one_head();
  const AlignmentUnits one_word = {.src = {0, 1, 2}, .tgt = {0, 0}, .src_count = 3, .tgt_count = 1};
  const UnitWeights weights(head.call().weights.matrix(0, 0), one_word, AlignmentStep::kNormal);
  EXPECT_DOUBLE_EQ(weights.at(0, 0), .125);
  EXPECT_DOUBLE_EQ(weights.at(0, 2), .4375);
}

/// Pieces with ids of their own, and eos.
SentencePair pair_of(const Vocabularies& vocabularies, const std::string& src, const std::string& tgt) {
  SentencePair pair;
  pair.src_text = src;
  pair.tgt_text = tgt;
  pair.src = vocabularies.src->encode(src);
  pair.tgt = vocabularies.tgt->encode(tgt);
  for (std::vector<TokenId>* ids : {&pair.src, &pair.tgt}) ids->push_back(kEos);
  return pair;
}

TEST(WordUnits, AreWholeWordsWherePiecesAreJoined) {
  const VocabularyPtr pieces = token_list_from_bytes("a@@\nb@@\nc\nd\n", "pieces");
  const Vocabularies vocabularies = {pieces, pieces};
  const SentencePair pair = pair_of(vocabularies, "a@@ b@@ c  d", "d x@@ c a@@");  // one piece is unknown, and one word has no end
  const AlignmentUnits words = word_units(pair, vocabularies, "@@"), apart = word_units(pair, vocabularies, "");
  EXPECT_EQ(words.src, (std::vector<int32_t>{0, 0, 0, 1}));
  EXPECT_EQ(words.tgt, (std::vector<int32_t>{0, 1, 1, 2}));
  EXPECT_EQ(std::pair(words.src_count, words.tgt_count), std::pair(2, 3));
  EXPECT_EQ(apart.src, (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(std::pair(apart.src_count, apart.tgt_count), std::pair(4, 4));
  ExploredSentences explored;
  explored.add(pair, vocabularies, "@@", {RoundedMap{.scale = 1, .levels = {0}}});
  EXPECT_EQ(explored.kept.at(0).src_words, (std::vector<int32_t>{0, 0, 0, 1, 2}));  // eos is one by itself
  EXPECT_EQ(explored.kept.at(0).tgt_words, (std::vector<int32_t>{0, 1, 1, 2, 3}));
}

TEST(AlignmentError, IsWorkedOutByHand) {
  const GoldLinks gold = {.sure = {{0, 0}, {1, 1}, {2, 2}}, .possible = {{0, 0}, {1, 1}, {1, 2}, {2, 2}}};
  const LinkCounts counts = LinkCounts::of({{0, 0}, {1, 2}, {3, 3}}, gold);  // one sure, two possible of three
  EXPECT_DOUBLE_EQ(counts.error_rate().value(), 1 - (1. + 2) / (3 + 3));
  EXPECT_DOUBLE_EQ(counts.precision().value(), 2. / 3);
  EXPECT_DOUBLE_EQ(counts.recall().value(), 1. / 3);
  EXPECT_FALSE(LinkCounts{}.error_rate().has_value());
}

TEST(AlignmentErrors, IntervalsHoldTheRateAndAreTheSameForTheSameSeed) {
  AlignmentErrors errors(1, 500, 3), again(1, 500, 3), single(1, 500, 3);
  for (int64_t sentence = 0; sentence < 60; ++sentence) {
    const int64_t right = sentence % 5;
    for (AlignmentErrors* each : {&errors, &again})
      each->add(sentence, {LinkCounts{.links = 5, .sure = 5, .in_sure = right, .in_possible = right}});
    single.add(sentence, {LinkCounts{.links = 4, .sure = 4, .in_sure = 2, .in_possible = 2}});
  }
  const Interval interval = errors.interval(0).value();
  EXPECT_DOUBLE_EQ(errors.total(0).error_rate().value(), .6);
  EXPECT_LT(interval.low, .6);
  EXPECT_GT(interval.high, .6);
  EXPECT_NEAR(interval.high - interval.low, 2 * 1.96 * .2828 / std::sqrt(60.), .04);  // rates 1, .8, .6, .4, .2: deviation .2828
  EXPECT_EQ(again.interval(0)->low, interval.low);
  EXPECT_DOUBLE_EQ(single.interval(0)->low, .5);  // all sentences alike: nothing to draw
  EXPECT_DOUBLE_EQ(single.interval(0)->high, .5);
}

TEST(AlignmentErrors, ResampleCountsOfManyLinks) {
  constexpr int64_t kMany = 2'000'000'000;  // two of them are more than 32 bits hold
  AlignmentErrors errors(1, 100, 3);
  for (int64_t sentence = 0; sentence < 4; ++sentence)
    errors.add(sentence, {LinkCounts{.links = kMany, .sure = kMany, .in_sure = kMany / 2, .in_possible = kMany / 2}});
  EXPECT_DOUBLE_EQ(errors.interval(0)->low, .5);
  EXPECT_DOUBLE_EQ(errors.interval(0)->high, .5);
}

class LinkFiles : public testing::Test {
 protected:
  int base_of(const std::string& links, std::optional<int> given = {}) const {
    return checked_base(folder_.write("links", links), given, src_, tgt_, "--gold-base");
  }
  std::string message(const std::string& links, std::optional<int> given = {}) const {
    return message_of<DataError>([&] { base_of(links, given); });
  }
  ScratchFolder folder_;
  std::string src_ = folder_.write("src", "a b c\nd e\n"), tgt_ = folder_.write("tgt", "x y\nz\n");
};

TEST_F(LinkFiles, AreReadWithSureAndPossibleLinks) {
  LinkReader reader(folder_.write("links", "1-1 0-0 2?1 1p0\n\n"));
  GoldLinks links;
  ASSERT_TRUE(reader.next(links));
  EXPECT_EQ(links.sure, (Links{{0, 0}, {1, 1}}));
  EXPECT_EQ(links.possible, (Links{{0, 0}, {1, 0}, {1, 1}, {2, 1}}));
  ASSERT_TRUE(reader.next(links));
  EXPECT_TRUE(links.possible.empty());
  EXPECT_FALSE(reader.next(links));
}

TEST_F(LinkFiles, ThatCountFromZeroAreAccepted) {
  EXPECT_EQ(base_of("0-0 2-1\n1-0\n"), 0);
}

TEST_F(LinkFiles, WithAnotherNumberOfLinesAreRefusedWithBothCounts) {
  EXPECT_THAT(message("0-0\n"), testing::HasSubstr("has 1 line and"));
  EXPECT_THAT(message("0-0\n0-0\n0-0\n"), testing::AllOf(testing::HasSubstr("has 3 lines"), testing::HasSubstr("has 2")));
}

TEST_F(LinkFiles, OutOfRangeAreRefusedWithTheirPlace) {
  EXPECT_THAT(message("0-0\n0-1\n"),
              testing::AllOf(testing::HasSubstr("links:2: link 0-1 is out of range"), testing::HasSubstr("2 and 1")));
}

TEST_F(LinkFiles, OfJoinedPiecesCountTheirWords) {
  src_ = folder_.write("src", "a@@ b c\nd@@ e\n");
  const auto base = [&](const std::string& links) {
    return checked_base(folder_.write("links", links), {}, src_, tgt_, "--gold-base", "@@");
  };
  EXPECT_EQ(base("0-0 1-1\n0-0\n"), 0);
  EXPECT_EQ(base_of("0-0 1-1\n1-0\n"), 0);
  EXPECT_THAT(message_of<DataError>([&] { base("0-0\n0-0 1-0\n"); }),
              testing::AllOf(testing::HasSubstr("links:2: link 1-0 is out of range"), testing::HasSubstr("1 and 1 words")));
}

TEST_F(LinkFiles, ThatCountFromOneAreSaidToDoSo) {
  EXPECT_THAT(message("1-1 3-2\n2-1\n"), testing::HasSubstr("counted from 1: say --gold-base 1"));
  EXPECT_EQ(base_of("1-1 3-2\n2-1\n", 1), 1);
  EXPECT_THAT(message("0-0\n1-1\n", 1), testing::HasSubstr("out of range"));
}

TEST_F(LinkFiles, ThatNeverNameWordZeroAreDoubted) {
  std::string long_text, links;
  for (int i = 0; i < 12; ++i) {
    long_text += "a b c d\n";
    links += "1-2 2-1\n";
  }
  src_ = tgt_ = folder_.write("long", long_text);
  EXPECT_THAT(message(links), testing::HasSubstr("seem to be counted from 1"));
  EXPECT_EQ(base_of(links, 0), 0);
}

TEST_F(LinkFiles, ThatNameWordZeroDoNotCountFromOne) {
  src_ = tgt_ = "";
  EXPECT_THAT(message("1-1\n0-0 1-1\n", 1),
              testing::AllOf(testing::HasSubstr("links:2: a link names word 0"), testing::HasSubstr("--gold-base 0")));
}

TEST_F(LinkFiles, OfSomethingElseAreRefused) {
  for (const char* word : {"1", "1-", "-1", "1--2", "a-b", "1:2", "1-2x", "2147483647-0", "0-1048577"})
    EXPECT_THAT(message(std::string(word) + "\n\n"), testing::HasSubstr("is not a link")) << word;
}

TEST_F(LinkFiles, OfAnythingAreQuotedInFewPlainBytes) {
  EXPECT_THAT(message("0-0\n\x1b[2J" + std::string(900000, 'x') + "\n"),
              testing::AllOf(testing::HasSubstr("links:2: \"\\u001b[2Jxxx"), testing::HasSubstr("xxx\"... is not a link"),
                             testing::Not(testing::HasSubstr("\x1b")),
                             testing::ResultOf([](const std::string& said) { return said.size(); }, testing::Lt(400u))));
  EXPECT_THAT(message("0-0 \x7f\xc2\x9b 1-1\n\n"), testing::HasSubstr("links:1: \"\\u007f\\u009b\" is not a link"));
  EXPECT_THAT(message(std::string(39, 'a') + "\xc3\xa4\n\n"), testing::HasSubstr("aaa\"... is not a link"));  // no half of a character
  EXPECT_THAT(message("0-0\n0-0 \xff\n"), testing::HasSubstr("links:2: byte 5 is not UTF-8"));
}

TEST_F(LinkFiles, OfGoldHaveALink) {
  const auto base = [&](const std::string& links) { return checked_base_of_gold(folder_.write("gold", links), {}, src_, tgt_); };
  EXPECT_EQ(base("\n0?0\n"), 0);
  EXPECT_THAT(message_of<DataError>([&] { base("\n\n"); }), testing::HasSubstr("gold: none of its 2 lines has a link"));
  EXPECT_THAT(message_of<DataError>([&] { base("1-1 3-2\n2-1\n"); }), testing::HasSubstr("say --gold-base 1"));
  EXPECT_EQ(base_of("\n\n"), 0);  // links to score may be none
}

}  // namespace
}  // namespace lacuna
