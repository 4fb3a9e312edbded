#include "bench/curves.h"

#include <gmock/gmock.h>

#include "../ablation/count_text.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pointwise;

CurvePicture sample_picture() {
  return {.title = "Cost",
          .subtitle = "two threads",
          .x_label = "tokens",
          .lengths = {16, 64, 256},
          .panels = {{"training", {{"softmax", {50, 60, 90}}, {"<local>", {50, 61, 88}}, {"rela", {55, 66, 99}}}},
                     {"translating", {{"softmax", {500, 600, 900}}, {"<local>", {400, 500, 880}}, {"rela", {550, 660, 990.4}}}}}};
}

TEST(Curves, NameAxesPanelsAndSystems) {
  const std::string svg = svg_curves(sample_picture());
  for (const char* text : {">Cost</text>", ">two threads</text>", ">training</text>", ">translating</text>"})
    EXPECT_EQ(count_text(svg, text), 1u) << text;
  for (const char* text : {">tokens</text>", ">16</text>", ">256</text>", ">softmax</text>", ">&lt;local&gt;</text>", ">rela</text>"})
    EXPECT_EQ(count_text(svg, text), 2u) << text;
}

TEST(Curves, HaveALineAndMarksOfTheirOwnShape) {
  const std::string svg = svg_curves(sample_picture());
  EXPECT_EQ(count_text(svg, "<polyline class=\"curve c0\""), 2u);
  EXPECT_EQ(count_text(svg, "<circle class=\"mark c0\""), 2u * 4);  // three lengths and the name
  EXPECT_EQ(count_text(svg, "<rect class=\"mark c1\""), 2u * 4);
  EXPECT_EQ(count_text(svg, "<path class=\"mark c2\""), 2u * 4);
}

TEST(Curves, SayNumbersWhenPointedAt) {
  EXPECT_THAT(svg_curves(sample_picture()),
              AllOf(HasSubstr("<title>rela, 256: 990</title>"), HasSubstr("<title>&lt;local&gt;, 16: 50</title>")));
}

TEST(Curves, NeedNothingElseAndKnowTheDark) {
  const std::string svg = svg_curves(sample_picture());
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("href")), Not(HasSubstr("url(")), HasSubstr("prefers-color-scheme: dark")));
  EXPECT_EQ(count_text(svg, "http"), 1u);  // the namespace
}

TEST(Curves, OfOneLengthAreStillAPicture) {
  const std::string svg = svg_curves({.lengths = {8}, .panels = {{"training", {{"softmax", {10}}}}}});
  EXPECT_THAT(svg, AllOf(HasSubstr(">softmax</text>"), HasSubstr("</svg>"), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

TEST(RoundTicks, HoldTheirRange) {
  EXPECT_THAT(round_ticks(30, 450), ElementsAre(20, 50, 100, 200, 500));
  EXPECT_THAT(round_ticks(20, 50), ElementsAre(20, 50));
  EXPECT_THAT(round_ticks(0.3, 1.5), Pointwise(DoubleNear(1e-9), {0.2, 0.5, 1.0, 2.0}));
}

TEST(RoundTicks, AreTwoAtLeast) {
  EXPECT_THAT(round_ticks(100, 100), ElementsAre(100, 200));
}

TEST(SpreadApart, LeavesAloneWhatIsFarApart) {
  EXPECT_THAT(spread_apart({10, 30, 80}, 16, 0, 100), ElementsAre(10, 30, 80));
  EXPECT_THAT(spread_apart({}, 16, 0, 100), ElementsAre());
}

TEST(SpreadApart, MovesNeighboursAlike) {
  EXPECT_THAT(spread_apart({50, 50, 90}, 16, 0, 100), ElementsAre(42, 58, 90));
  EXPECT_THAT(spread_apart({50, 52, 54}, 10, 0, 100), ElementsAre(42, 52, 62));
}

TEST(SpreadApart, StaysWithinItsEnds) {
  EXPECT_THAT(spread_apart({1, 2}, 10, 0, 100), ElementsAre(0, 10));
  EXPECT_THAT(spread_apart({98, 99, 100}, 10, 0, 100), ElementsAre(80, 90, 100));
}

}  // namespace
}  // namespace lacuna
