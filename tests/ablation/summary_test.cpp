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

TEST(Summary, KeepsWhyRunsFailed) {
  const AblationReport report = sample_report();
  EXPECT_TRUE(report.variants[2].seeds.empty());
  EXPECT_THAT(report.variants[2].failures, ElementsAre(Pair(1, "the gradient was\nnot finite | ever")));
}

}  // namespace
}  // namespace lacuna
