#include "ablation/tables.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "report.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(MarkdownTable, HasARowForEachVariant) {
  const std::string table = markdown_table(sample_report());
  EXPECT_THAT(
      table,
      HasSubstr("| softmax | **41.00 ± 1.41** | – | 60.00 ± 0.00 | 1.250 ± 0.000 | – | 12,346 | – | 7,654,321 | – | 6 (1,200) | 1, 2 |\n"));
  EXPECT_THAT(table, HasSubstr("| rela_g | 40.25 ± 1.77 | −0.75 (0.040, 0.250) | 60.00 ± 0.00 | 1.250 ± 0.000 | 50, –, 75 | "));
  EXPECT_THAT(table, AllOf(HasSubstr("on test2016 (nrefs:1)"), HasSubstr("BLEU less that of softmax")));
}

TEST(MarkdownTable, SaysWhatFailedOnOneLine) {
  const std::string table = markdown_table(sample_report());
  EXPECT_THAT(table, HasSubstr("| bad<one> | failed | –"));
  EXPECT_THAT(table, HasSubstr("- bad<one>, seed 1: the gradient was not finite | ever\n"));
}

TEST(MarkdownTable, NamesTheOtherVariantWhereItIsNotTheFirst) {
  AblationReport report = sample_report();
  report.variants[1].against = "softmax_6";
  EXPECT_THAT(markdown_table(report), HasSubstr("−0.75 to softmax_6 (0.040, 0.250)"));
}

TEST(MarkdownTable, NamesWhatIsLeftOut) {
  AblationReport report = sample_report();
  EXPECT_THAT(markdown_table(report), Not(HasSubstr("Left out")));
  report.left_out = {RunResult{.variant = "span", .seed = 1}, RunResult{.variant = "rela_g", .seed = 3},
                     RunResult{.variant = "span", .seed = 2}};
  EXPECT_THAT(markdown_table(report), AllOf(HasSubstr("\nLeft out, "), HasSubstr("\n- rela_g, seed 3\n- span, seeds 1, 2\n")));
  report.variants.clear();
  EXPECT_THAT(markdown_table(report), AllOf(HasSubstr("No run has ended yet.\n\nLeft out, "), HasSubstr("- span")));
}

TEST(MarkdownTable, OfOneSeedHasNoDeviation) {
  const AblationReport report =
      summarize({RunResult{.variant = "a", .seed = 1, .bleu = 30.125, .chrf = 50}}, {}, {.fingerprints = {{"a", ""}}});
  EXPECT_THAT(markdown_table(report), AllOf(HasSubstr("| a | 30.1"), Not(HasSubstr("50.00 ±"))));
}

TEST(MarkdownTable, OfNothingSaysSo) {
  EXPECT_EQ(markdown_table({}), "No run has ended yet.\n");
}

TEST(LatexTable, EscapesWhatLatexWouldRead) {
  const std::string table = latex_table(sample_report());
  EXPECT_THAT(table, AllOf(HasSubstr("rela\\_g & 40.25 $\\pm$ 1.77 & $-$0.75"), HasSubstr("zeros, \\%"), HasSubstr(" \\\\\n\\bottomrule")));
  EXPECT_THAT(latex_table({}), HasSubstr("\\end{tabular}"));
}

TEST(LatexTable, FitsAPageUnlessColumnsAreNamed) {
  EXPECT_THAT(latex_table(sample_report()), HasSubstr("{lrrrrr}"));
  const std::string two = latex_table(sample_report(), {"loss", "bleu"});
  EXPECT_THAT(two,
              AllOf(HasSubstr("{lrr}"), HasSubstr("attention & loss & BLEU "), HasSubstr("softmax & 1.250 $\\pm$ 0.000 & \\textbf{41.00")));
}

TEST(Tables, HaveTheColumnsThatAreNamed) {
  const std::string table = markdown_table(sample_report(), {"seeds", "bleu"});
  EXPECT_THAT(
      table, AllOf(HasSubstr("| attention | seeds | BLEU |\n| --- | --- | --- |\n"), HasSubstr("| softmax | 1, 2 | **41.00 ± 1.41** |\n")));
  for (const std::string& column : table_columns())
    EXPECT_THAT(markdown_table(sample_report(), {column}), HasSubstr("| softmax | ")) << column;
}

TEST(Tables, HaveTheBestValuesInBoldUnlessAllAreTheSame) {
  AblationReport report = sample_report();
  report.variants[0].valid_loss->mean = 1.5;
  const std::string table = markdown_table(report, {"bleu", "loss", "chrf"});
  EXPECT_THAT(table, HasSubstr("| **41.00 ± 1.41** | 1.500 ± 0.000 | 60.00 ± 0.00 |\n"));
  EXPECT_THAT(table, HasSubstr("| 40.25 ± 1.77 | **1.250 ± 0.000** | 60.00 ± 0.00 |\n"));
}

TEST(Tables, ShowNamesAsReadersKnowThem) {
  for (const auto& [name, shown] : {std::pair("topk-k=4", "top-k, k = 4"),
                                    {"softmax", "softmax"},
                                    {"entmax15", "1.5-entmax"},
                                    {"rela-norm=gated_rms", "ReLA, norm = gated_rms"},
                                    {"cross=rela", "cross = ReLA"},
                                    {"top-8", "top-8"},
                                    {"mine", "mine"},
                                    {"leaky-rela", "leaky-rela"},
                                    {"topk-", "topk-"}})
    EXPECT_EQ(display_name(name), shown);
}

TEST(Tables, ShowEpochsOfAShortRunWithADecimal) {
  AblationReport report = sample_report();
  report.variants[0].epochs->mean = 0.69;
  EXPECT_THAT(markdown_table(report, {"epochs"}), AllOf(HasSubstr("| 0.7 (1,200) |"), HasSubstr("| 6 (1,200) |")));
}

TEST(JsonReport, HasSummariesAndRuns) {
  const auto json = nlohmann::json::parse(json_report(sample_report()));
  EXPECT_EQ(json["variants"][1]["name"], "rela_g");
  EXPECT_EQ(json["variants"][1]["bleu"]["mean"], 40.25);
  EXPECT_EQ(json["variants"][1]["sparsity"]["cross"], .75);
  EXPECT_TRUE(json["variants"][1]["translate_tokens_per_second"].is_null());
  EXPECT_EQ(json["variants"][2]["failures"][0]["seed"], 1);
  EXPECT_EQ(json["runs"].size(), 5u);
  EXPECT_EQ(json["left_out"].size(), 0u);
}

TEST(JsonReport, KeepsRowsThatAreLeftOut) {
  AblationReport report = sample_report();
  report.left_out = {RunResult{.variant = "span", .seed = 2}};
  EXPECT_EQ(nlohmann::json::parse(json_report(report))["left_out"][0]["variant"], "span");
}

TEST(Tables, ShowThatALossIsUnknown) {
  AblationReport report = sample_report();
  report.variants[0].valid_loss.reset();
  EXPECT_THAT(markdown_table(report), HasSubstr("| softmax | **41.00 ± 1.41** | – | 60.00 ± 0.00 | – | "));
  EXPECT_THAT(latex_table(report, {"chrf", "loss", "seeds"}), HasSubstr("60.00 $\\pm$ 0.00 & -- & 1, 2"));
  EXPECT_TRUE(nlohmann::json::parse(json_report(report))["variants"][0]["valid_loss"].is_null());
}

}  // namespace
}  // namespace lacuna
