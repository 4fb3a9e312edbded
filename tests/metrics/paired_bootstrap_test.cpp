#include <gmock/gmock.h>

#include "base/error.h"
#include "metrics/sacrebleu.h"
#include "scratch.h"

namespace lacuna {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Sixty sentences of ten words; from the first wrong one on, every so many has a wrong word.
std::string sentences(int wrong_every, int first_wrong = 0) {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += "one two three four " + std::string(i % wrong_every == first_wrong ? "wrong" : "five") + " six seven eight nine ten\n";
  return text;
}

TEST(PairedBootstrap, TellsADifferenceFromChance) {
  const Scratch scratch;
  const auto reference = scratch.write("ref", sentences(60, 60)), baseline = scratch.write("one", sentences(3));
  const auto alike = scratch.write("t│wo", sentences(3, 1)), better = scratch.write("three", sentences(20));
  const PairedComparison comparison =
      paired_bootstrap(real_scorer(), {baseline, alike, better}, {reference}, 200, {.metrics = {"bleu", "ter"}});
  ASSERT_EQ(comparison.systems.size(), 3u);
  EXPECT_EQ(comparison.systems[1].hypotheses, alike);
  EXPECT_EQ(comparison.systems[0].scores[0].first, "bleu");
  EXPECT_FALSE(comparison.systems[0].scores[0].second.p_value);
  EXPECT_EQ(comparison.systems[0].scores[0].second.score, comparison.systems[1].scores[0].second.score);
  EXPECT_GT(comparison.systems[1].scores[0].second.p_value.value(), 0.1);
  EXPECT_LT(comparison.systems[2].scores[0].second.p_value.value(), 0.05);
  EXPECT_LT(comparison.systems[2].scores[1].second.score, comparison.systems[0].scores[1].second.score);
  EXPECT_THAT(comparison.report, HasSubstr("Paired bootstrap resampling test with 200"));
  EXPECT_THAT(comparison.signatures[0].second, HasSubstr("bs:200"));
}

TEST(PairedBootstrap, WhereAMetricSeesNoDifferenceNothingIsSignificant) {
  const Scratch scratch;
  const std::string text = sentences(3);
  std::string upper = text, spaced = text;
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  for (size_t at = 0; (at = spaced.find(' ', at)) != std::string::npos; at += 2) spaced.insert(at, " ");
  const auto reference = scratch.write("ref", sentences(60, 60)), baseline = scratch.write("one", text);
  const auto in_capitals = scratch.write("two", upper), with_blanks = scratch.write("three", spaced);
  const PairedComparison comparison =
      paired_bootstrap(real_scorer(), {baseline, in_capitals, with_blanks}, {reference}, 200, {.metrics = {"bleu", "ter"}});
  const auto p_value = [&](size_t system, size_t metric) { return comparison.systems[system].scores[metric].second.p_value.value(); };
  EXPECT_LT(p_value(1, 0), 0.05);  // BLEU goes by case
  EXPECT_EQ(p_value(1, 1), 1);     // TER does not
  EXPECT_EQ(p_value(2, 0), 1);
  EXPECT_EQ(p_value(2, 1), 1);
  EXPECT_THAT(comparison.report, HasSubstr("two does not differ from the baseline in ter: p is 1 there"));
  EXPECT_THAT(comparison.report, HasSubstr("three does not differ from the baseline in bleu, ter"));
}

TEST(PairedBootstrap, ADifferenceBeyondTheDigitsOfTheTableIsOne) {
  const Scratch scratch;
  std::string reference, baseline, better;
  for (int i = 0; i < 12000; ++i) {
    const std::string line = "line " + std::to_string(i) + " says that one word of some ten may differ here";
    reference += line + "\n";
    baseline += (i % 3 == 0 ? line.substr(0, line.size() - 4) + "there" : line) + "\n";
    better += (i % 3 == 0 && i % 3000 != 0 ? line.substr(0, line.size() - 4) + "there" : line) + "\n";
  }
  const PairedComparison comparison = paired_bootstrap(real_scorer(), {scratch.write("one", baseline), scratch.write("two", better)},
                                                       {scratch.write("ref", reference)}, 60, {.metrics = {"chrf"}});
  const PairedScore &first = comparison.systems[0].scores[0].second, &second = comparison.systems[1].scores[0].second;
  EXPECT_EQ(first.score, second.score);  // as printed
  EXPECT_LT(second.p_value.value(), 1);
  EXPECT_THAT(comparison.report, Not(HasSubstr("does not differ")));
}

TEST(PairedBootstrap, NeedsTwoSystems) {
  EXPECT_THAT(message_of<UsageError>([] { paired_bootstrap(real_scorer(), {"one"}, {"ref"}, 10, {}); }), HasSubstr("two or more"));
}

TEST(PairedBootstrap, ASystemGivenTwiceIsRefused) {
  EXPECT_THAT(message_of<UsageError>([] {
                paired_bootstrap(real_scorer(), {"one", "two", "one"}, {"ref"}, 10, {});
              }),
              HasSubstr("one is given twice"));
}

TEST(PairedBootstrap, AnAnswerWithoutATableIsRefused) {
  const Scratch scratch;
  const auto one = scratch.write("one", "a\n"), two = scratch.write("two", "a\n");
  const Scorer silent = {{scratch.write_program("sacrebleu", "exit 0")}};
  EXPECT_THROW(paired_bootstrap(silent, {one, two}, {one}, 10, {}), MachineError);
}

}  // namespace
}  // namespace lacuna
