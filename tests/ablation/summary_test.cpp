#include "ablation/summary.h"

#include <gmock/gmock.h>

#include <cmath>

#include "report.h"

namespace lacuna {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(MeanOf, IsThatOfASample) {
  const Mean mean = mean_of({1, 2, 6}).value();
  EXPECT_DOUBLE_EQ(mean.mean, 3);
  EXPECT_DOUBLE_EQ(mean.deviation, std::sqrt(7.0));  // (4 + 1 + 9) / 2
  EXPECT_EQ(mean.count, 3);
  EXPECT_EQ(mean_of({5}).value().deviation, 0);
  EXPECT_FALSE(mean_of({}));
}

TEST(Summary, HasVariantsInOrderAndWithoutThoseThatHaveNoRows) {
  const AblationReport report = sample_report();
  std::vector<std::string> names;
  for (const VariantSummary& variant : report.variants) names.push_back(variant.name);
  EXPECT_THAT(names, ElementsAre("softmax", "rela_g", "bad<one>"));
  EXPECT_EQ(report.test_set, "test2016");
}

TEST(Summary, IsOverSeeds) {
  const AblationReport report = sample_report();
  const VariantSummary& rela = report.variants[1];
  EXPECT_THAT(rela.seeds, ElementsAre(1, 2));
  EXPECT_DOUBLE_EQ(rela.bleu->mean, 40.25);
  EXPECT_THAT(rela.bleu_values, ElementsAre(39, 41.5));
  EXPECT_DOUBLE_EQ(rela.difference.value(), -.75);
  EXPECT_THAT(rela.p_values, ElementsAre(.04, .25));
  EXPECT_THAT(rela.sparsity, ElementsAre(Pair("cross", .75), Pair("encoder_self", .5)));
  EXPECT_FALSE(rela.translate_speed);
}

/// A row with the fingerprints of its own options and of the shared ones.
RunResult row_of(const std::string& variant, int64_t seed, const std::string& own, const std::string& shared) {
  return {.variant = variant,
          .seed = seed,
          .fingerprint = own,
          .shared_fingerprint = shared,
          .test_set = shared + " set",
          .signature = "nrefs:1",
          .bleu = 10 * static_cast<double>(seed)};
}

std::vector<std::string> names_of(const std::vector<RunResult>& rows) {
  std::vector<std::string> names;
  for (const RunResult& row : rows) names.push_back(row.variant + std::to_string(row.seed));
  return names;
}

const TableScope kNew = {.fingerprints = {{"mine", "k=8"}, {"softmax", "s"}}};

TEST(Summary, IsOfRunsWithTheSameOptions) {
  const AblationReport report =
      summarize({row_of("mine", 1, "k=4", "new"), row_of("mine", 2, "k=8", "new"), row_of("softmax", 1, "s", "new"),
                 row_of("softmax", 2, "s, once", "old"), row_of("rela", 1, "r", "old")},
                {"softmax"}, kNew);
  ASSERT_EQ(report.variants.size(), 2u);
  EXPECT_THAT(report.variants[0].seeds, ElementsAre(1));
  EXPECT_THAT(report.variants[1].bleu_values, ElementsAre(20));
  EXPECT_THAT(names_of(report.runs), ElementsAre("mine2", "softmax1"));
  EXPECT_THAT(names_of(report.left_out), ElementsAre("mine1", "softmax2", "rela1"));
  EXPECT_EQ(report.test_set, "new set");
}

TEST(Summary, ComparesWithOneVariantThatIsInTheTable) {
  std::vector<RunResult> rows = {row_of("softmax", 1, "s", "new"), row_of("softmax", 2, "s", "new"), row_of("softmax", 3, "s, once", "old"),
                                 row_of("mine", 1, "k=8", "new"),  row_of("mine", 2, "k=8", "new"),  row_of("mine", 3, "k=8", "new"),
                                 row_of("base", 1, "b", "new")};
  rows[3].comparison = Comparison{.against = "base", .seed = 1, .difference = 9, .p_value = .9};
  rows[4].comparison = Comparison{.against = "softmax", .seed = 2, .difference = 1, .p_value = .1};
  rows[5].comparison = Comparison{.against = "softmax", .seed = 3, .difference = 5, .p_value = .5};
  TableScope scope = kNew;
  scope.fingerprints["base"] = "b";
  const AblationReport report = summarize(rows, {"softmax", "mine"}, scope);
  const VariantSummary& mine = report.variants[1];
  EXPECT_EQ(mine.against, "softmax");
  EXPECT_EQ(mine.difference, 1);
  EXPECT_THAT(mine.p_values, ElementsAre(.1));
}

TEST(Summary, SaysAllSignatures) {
  std::vector<RunResult> rows = {row_of("softmax", 1, "s", "new"), row_of("softmax", 2, "s", "new"), row_of("mine", 1, "k=8", "new")};
  rows[1].signature = "nrefs:1|version:3";
  rows[2].signature = "nrefs:1|version:3";
  rows[0].signature = "nrefs:1|version:2";
  EXPECT_EQ(summarize(rows, {}, kNew).signature, "nrefs:1|version:2; nrefs:1|version:3");
}

TEST(Summary, KeepsWhyRunsFailed) {
  const AblationReport report = sample_report();
  EXPECT_TRUE(report.variants[2].seeds.empty());
  EXPECT_THAT(report.variants[2].failures, ElementsAre(Pair(1, "the gradient was\nnot finite | ever")));
}

}  // namespace
}  // namespace lacuna
