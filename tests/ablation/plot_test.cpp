#include <gmock/gmock.h>

#include "ablation/tables.h"
#include "count_text.h"
#include "report.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Plot, NamesAxesAndVariants) {
  EXPECT_THAT(svg_plot(sample_report()),
              AllOf(HasSubstr(">BLEU on test2016</text>"), HasSubstr(">zero weights, %</text>"), HasSubstr(">rela_g</text>")));
}

TEST(Plot, HasAMarkForEachVariantEachSeedAndTheLegend) {
  const std::string svg = svg_plot(sample_report());
  EXPECT_EQ(count_text(svg, "<circle class=\"bleu\""), 3u);
  EXPECT_EQ(count_text(svg, "<circle class=\"seed\""), 5u);
  EXPECT_EQ(count_text(svg, "<path class=\"cross\""), 2u);
  EXPECT_EQ(count_text(svg, ">failed</text>"), 1u);
}

TEST(Plot, SaysNumbersWhenPointedAt) {
  EXPECT_THAT(svg_plot(sample_report()),
              AllOf(HasSubstr("<title>softmax: 41.00 BLEU ± 1.50</title>"), HasSubstr("<title>rela_g, cross: 75.0 %</title>")));
}

TEST(Plot, NeedsNothingElseAndKnowsTheDark) {
  const std::string svg = svg_plot(sample_report());
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("href")), Not(HasSubstr("url(")), HasSubstr("prefers-color-scheme: dark")));
  EXPECT_EQ(count_text(svg, "http"), 1u);  // the namespace
}

TEST(Plot, EscapesNames) {
  EXPECT_THAT(svg_plot(sample_report()), AllOf(HasSubstr("bad&lt;one&gt;"), Not(HasSubstr("bad<"))));
}

TEST(Plot, OfNothingIsStillAPicture) {
  EXPECT_THAT(svg_plot({}), AllOf(HasSubstr("<svg"), HasSubstr("</svg>"), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

}  // namespace
}  // namespace lacuna
