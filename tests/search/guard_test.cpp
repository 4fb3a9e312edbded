#include "search/guard.h"

#include <gmock/gmock.h>

#include <cmath>

#include "letters.h"
#include "search/translator.h"
#include "toy_model.h"

namespace lacuna {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(LoopShare, CountsTokensThatRepeatTheNgramBefore) {
  EXPECT_EQ(loop_share(Tokens{}), 0);
  EXPECT_EQ(loop_share(Tokens{5}), 0);
  EXPECT_EQ(loop_share(Tokens{5, 6, 7, 5, 8, 6, 7}), 0) << "apart";
  EXPECT_EQ(loop_share(Tokens{5, 5, 6, kEos}), 1. / 4);
  EXPECT_EQ(loop_share(Tokens{5, 5, 5, 5}), 3. / 4);
  EXPECT_EQ(loop_share(Tokens{5, 6, 7, 5, 6, 7, kEos}), 3. / 7);
  EXPECT_EQ(loop_share(Tokens{5, 6, 7, 5, 6, 7, 5, 6, 8, kEos}), 5. / 10) << "the last one is cut short";
  EXPECT_EQ(loop_share(Tokens{5, 6, 5, 6, 5, 6, 6, 6}), 6. / 8) << "two loops";
}

TEST(LoopShare, LooksForLoopsOfMoreThanASentence) {
  Tokens tokens;
  for (int i = 0; i < 200; ++i) tokens.push_back(10 + i % 50);
  EXPECT_EQ(loop_share(tokens), 150. / 200);
}

TEST(RepeatsItself, WhereATrigramComesTwice) {
  EXPECT_FALSE(repeats_itself(Tokens{5, 6, 7, 8, 5, 6, 9}));
  EXPECT_TRUE(repeats_itself(Tokens{5, 6, 7, 8, 5, 6, 7}));
  EXPECT_TRUE(repeats_itself(Tokens{5, 5, 5, 5}));
  EXPECT_FALSE(repeats_itself(Tokens{5, 5}));
}

AlignmentRow row_of(std::vector<float> weights) {
  return std::make_shared<const std::vector<float>>(std::move(weights));
}

std::vector<std::string> names(const GuardVerdict& verdict) {
  std::vector<std::string> all;
  for (const GuardFlag& flag : verdict.flags) all.push_back(flag.measure);
  return all;
}

TEST(Judge, FindsNothingInAPlainTranslation) {
  const Tokens src = {5, 6, 7, kEos}, tgt = {8, 9, 10, kEos};
  const std::vector<float> log_probs = {-0.1F, -0.3F, -0.2F, -0.2F};
  const std::vector<AlignmentRow> attention = {row_of({1, 0, 0, 0}), row_of({0, 1, 0, 0}), row_of({0, 0, 1, 0}), row_of({0, 0, 0, 1})};
  const GuardVerdict verdict = judge({src, tgt, log_probs, attention}, {});
  EXPECT_EQ(verdict.length_ratio, 1);
  EXPECT_EQ(verdict.loop, 0);
  EXPECT_EQ(verdict.unattended, 0);
  EXPECT_EQ(verdict.null_rate, 0);
  EXPECT_THAT(verdict.token_log_prob, DoubleNear(-0.2, 1e-6));
  EXPECT_THAT(verdict.risk, DoubleNear(0.2 / 2.5, 1e-6));
  EXPECT_THAT(verdict.flags, IsEmpty());
}

TEST(Judge, KnowsNothingOfAttentionThatWasNotLookedAt) {
  const GuardVerdict verdict = judge({Tokens{5, kEos}, Tokens{6, kEos}, std::vector<float>{0, 0}, {}}, {});
  EXPECT_FALSE(verdict.unattended);
  EXPECT_FALSE(verdict.null_rate);
}

TEST(Judge, FlagsLengthsOnBothSides) {
  const std::vector<float> log_probs(12, 0);
  const Tokens one = {5, kEos}, many = {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, kEos};
  const GuardVerdict longer = judge({one, many, log_probs, {}}, {});
  EXPECT_EQ(longer.length_ratio, 6);
  ASSERT_THAT(names(longer), ElementsAre("length_ratio"));
  EXPECT_TRUE(longer.flags[0].is_at_most);
  EXPECT_EQ(longer.flags[0].limit, GuardLimits().max_length_ratio);
  EXPECT_THAT(longer.risk, DoubleNear(std::log(6) / std::log(GuardLimits().max_length_ratio), 1e-9));
  const GuardVerdict shorter = judge({many, one, std::span(log_probs).first(2), {}}, {});
  ASSERT_THAT(names(shorter), ElementsAre("length_ratio"));
  EXPECT_FALSE(shorter.flags[0].is_at_most);
  EXPECT_EQ(shorter.flags[0].value, 2. / 12);
}

TEST(Judge, ForgivesRepetitionsOfTheSource) {
  const Tokens loop = {5, 5, 5, 5, 5, kEos}, plain = {6, 7, 8, 9, 10, kEos};
  const std::vector<float> log_probs(6, 0);
  EXPECT_THAT(names(judge({plain, loop, log_probs, {}}, {})), ElementsAre("loop"));
  EXPECT_THAT(names(judge({loop, loop, log_probs, {}}, {})), IsEmpty());
}

TEST(Judge, FlagsSourcesThatAreNotSeenAndTokensThatSeeNothing) {
  const Tokens src = {5, 6, 7, 8, kEos}, tgt = {9, 10, kEos};
  const std::vector<float> log_probs(3, 0);
  const std::vector<AlignmentRow> on_eos = {row_of({0, 0, 0, 0, 3}), row_of({0.25F, 0, 0, 0, 0.75F}), row_of({0, 0, 0, 0, 0.1F})};
  const GuardVerdict unseen = judge({src, tgt, log_probs, on_eos}, {.max_unattended = 0.7});
  EXPECT_EQ(unseen.unattended, 3. / 4);
  EXPECT_EQ(unseen.null_rate, 0);
  EXPECT_THAT(names(unseen), ElementsAre("unattended"));
  const std::vector<AlignmentRow> on_nothing = {row_of({0, 0, 0, 0, 0}), row_of({}), row_of({1, 1, 1, 1, 0})};
  const GuardVerdict nothing = judge({src, tgt, log_probs, on_nothing}, {});
  EXPECT_EQ(nothing.unattended, 0) << "a quarter each: a row is divided by its sum";
  EXPECT_EQ(nothing.null_rate, 2. / 3);
  EXPECT_THAT(names(nothing), ElementsAre("null_rate"));
}

TEST(Judge, FlagsWhatTheModelDoesNotBelieve) {
  const GuardVerdict verdict = judge({Tokens{5, kEos}, Tokens{6, kEos}, std::vector<float>{-4, -2}, {}}, {.min_token_log_prob = -2});
  EXPECT_EQ(verdict.token_log_prob, -3);
  ASSERT_THAT(names(verdict), ElementsAre("token_log_prob"));
  EXPECT_FALSE(verdict.flags[0].is_at_most);
  EXPECT_EQ(verdict.risk, 1.5);
}

// --- translating with a guard ---

/// A table that says `a` again and again, `by` logits before all other tokens, unless the source is `b`, which it copies.
StepModelPtr loops_on_all_but_b(float by) {
  return std::make_shared<ToyModel>(kLetterVocabulary, [=](const Tokens& src, const Tokens& tokens) {
    if (src.front() == 4) return says({4}, kLetterVocabulary)(src, tokens);
    std::vector<float> logits(kLetterVocabulary, 0);
    logits[3] = by;
    return logits;
  });
}

std::vector<TranslatedLine> guarded(const StepModelPtr& model, Guard guard, const std::vector<std::string>& texts) {
  TranslatorSettings settings{beam_of(2), AlignmentLevel::kNone, 0, 1};
  settings.options.guard = guard;
  settings.options.max_length = 10;
  std::vector<TranslationInput> lines;
  for (const std::string& text : texts) lines.push_back({text, "", static_cast<int64_t>(lines.size())});
  return Translator(model, letters(), settings).translate(lines);
}

TEST(Guard, JudgesEachTranslationIfAsked) {
  const auto lines = guarded(loops_on_all_but_b(3), Guard::kFlag, {"b", "", "c d e f"});
  EXPECT_THAT(lines[0].translations.front().guard->flags, IsEmpty());
  EXPECT_TRUE(lines[0].translations.front().guard->unattended.has_value());
  EXPECT_THAT(lines[1].translations.front().guard->flags, IsEmpty());
  EXPECT_THAT(names(*lines[2].translations.front().guard), testing::Contains("loop"));
  for (const TranslatedLine& line : lines) EXPECT_FALSE(line.is_second_search);
  EXPECT_FALSE(guarded(loops_on_all_but_b(3), Guard::kNone, {"b"})[0].translations.front().guard);
}

TEST(Guard, SearchesAgainWithoutRepetitionsAndKeepsTheBetter) {
  const std::vector<std::string> texts = {"b", "c d e f", "", "d"};
  const auto first = guarded(loops_on_all_but_b(3), Guard::kFlag, texts), second = guarded(loops_on_all_but_b(3), Guard::kRetry, texts);
  EXPECT_EQ(second[0].translations.front().text, "b");
  EXPECT_FALSE(second[0].is_second_search);
  for (const size_t i : {1, 3}) {
    EXPECT_TRUE(second[i].is_second_search);
    EXPECT_FALSE(repeats_itself(second[i].translations.front().tokens));
    EXPECT_LT(second[i].translations.front().guard->risk, first[i].translations.front().guard->risk);
  }
}

TEST(Guard, KeepsTheFirstWhereTheSecondIsNoBetter) {
  const auto model = loops_on_all_but_b(40);  // all but `a` are next to impossible
  const auto first = guarded(model, Guard::kFlag, {"c d e f"}), second = guarded(model, Guard::kRetry, {"c d e f"});
  EXPECT_FALSE(second[0].is_second_search);
  EXPECT_EQ(second[0].translations.front().text, first[0].translations.front().text);
}

TEST(Guard, LeavesValidationAlone) {
  TranslateOptions options = beam_of(2);
  options.max_length = 10;
  const auto model = loops_on_all_but_b(3);
  const auto plain = translate_lines(*model, letters(), {"c d"}, options);
  options.guard = Guard::kRetry;
  EXPECT_EQ(translate_lines(*model, letters(), {"c d"}, options), plain);
}

}  // namespace
}  // namespace lacuna
