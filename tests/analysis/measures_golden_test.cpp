#include <map>

#include "../base/scratch_folder.h"
#include "analysis/alignment_error.h"
#include "analysis/analysis.h"
#include "analysis/links.h"
#include "analysis/place_measures.h"
#include "analysis/word_weights.h"
#include "golden.h"

// Every measure against NumPy (tests/golden/make_analysis_golden.py).
namespace lacuna {
namespace {

constexpr double kTolerance = 1e-9;  // both sides work in double on the same floats

TEST(AnalysisGolden, RowMeasuresAndDiversityAreNumPys) {
  for (const json& golden : analysis_golden().at("places")) {
    const bool is_rectified = golden.at("is_rectified");
    const SentenceWeights weights(golden.at("weights"), 0, AttentionSite::kCross);
    const PlaceSums sums = measure_sentence(weights.call(), 0, {true, is_rectified});
    for (size_t h = 0; h < sums.heads.size(); ++h) {
      const json& expected = golden.at("heads")[h];
      const HeadSums& head = sums.heads[h];
      EXPECT_EQ(head.rows, expected.at("rows").get<int64_t>());
      EXPECT_NEAR(head.sparsity(), expected.at("sparsity"), kTolerance);
      EXPECT_NEAR(head.null_rate(), expected.at("null_rate"), kTolerance);
      EXPECT_NEAR(head.support(), expected.at("support"), kTolerance);
      ASSERT_EQ(head.mean_entropy().has_value(), !expected.at("entropy").is_null());
      if (head.mean_entropy()) {
        EXPECT_NEAR(*head.mean_entropy(), expected.at("entropy"), kTolerance);
      }
    }
    for (size_t t = 0; t < golden.at("divergence").size(); ++t)
      EXPECT_NEAR(sums.divergence[t] / static_cast<double>(sums.queries), golden.at("divergence")[t], kTolerance) << "temperature " << t;
  }
}

AlignmentUnits units_of(const json& sentence) {
  AlignmentUnits units{sentence.at("src_words"), sentence.at("tgt_words"), 0, 0};
  units.src_count = units.src.back() + 1;
  units.tgt_count = units.tgt.back() + 1;
  return units;
}

TEST(AnalysisGolden, LinksAndErrorRatesAreNumPys) {
  const json golden = analysis_golden().at("alignment");
  const ScratchFolder folder;
  std::string gold_text;
  for (const json& sentence : golden.at("sentences")) gold_text += sentence.at("gold").get<std::string>() + "\n";
  LinkReader reader(folder.write("gold", gold_text));
  std::map<std::string, std::vector<LinkCounts>> totals;
  for (const json& sentence : golden.at("sentences")) {
    GoldLinks gold;
    ASSERT_TRUE(reader.next(gold));
    const SentenceWeights weights(sentence.at("weights"), 0, AttentionSite::kCross);
    for (const AlignmentStep step : kAlignmentSteps) {
      const auto systems = unit_weights_of_heads(weights.call(), 0, units_of(sentence), step);
      auto& total = totals[name_of(step)];
      total.resize(systems.size());
      for (size_t i = 0; i < systems.size(); ++i) {
        EXPECT_EQ(json(systems[i].links()), sentence.at("links").at(name_of(step))[i]);
        total[i].add(LinkCounts::of(systems[i].links(), gold));
      }
    }
  }
  for (const auto& [step, counts] : totals)
    for (size_t i = 0; i < counts.size(); ++i)
      EXPECT_NEAR(counts[i].error_rate().value(), golden.at("error_rates").at(step)[i], kTolerance) << step << " " << i;
}

TEST(AnalysisGolden, CalibrationIsNumPys) {
  for (const json& golden : analysis_golden().at("calibration")) {
    MaskEffect sums;
    for (size_t i = 0; i < golden.at("original").size(); ++i) sums.add_row(row_of(golden.at("original")[i]), row_of(golden.at("masks")[i]));
    const auto rows = static_cast<double>(sums.rows);
    EXPECT_EQ(sums.rows, golden.at("rows").get<int64_t>());
    EXPECT_NEAR(sums.divergence / rows, golden.at("divergence"), kTolerance);
    EXPECT_NEAR(sums.entropy_change / rows, golden.at("entropy_change"), kTolerance);
    EXPECT_NEAR(sums.mask / rows, golden.at("mask"), kTolerance);
    for (size_t i = 0; i < MaskEffect::kBins; ++i) {
      const json expected = golden.at("bins").value(std::to_string(i), json::array({0, 0.0}));
      EXPECT_EQ(sums.bins[i].rows, expected[0].get<int64_t>()) << "bin " << i;
      if (sums.bins[i].rows > 0) {
        EXPECT_NEAR(sums.bins[i].divergence / static_cast<double>(sums.bins[i].rows), expected[1], kTolerance);
      }
    }
  }
}

TEST(AnalysisGolden, RankCorrelationIsNumPys) {
  for (const json& golden : analysis_golden().at("ranks")) {
    const auto tau = kendall_tau_b(golden.at("x").get<std::vector<double>>(), golden.at("y").get<std::vector<double>>());
    ASSERT_EQ(tau.has_value(), !golden.at("tau_b").is_null());
    if (tau) {
      EXPECT_NEAR(*tau, golden.at("tau_b"), kTolerance);
    }
  }
}

TEST(AnalysisGolden, LearnedNumbersAreNumPysAverages) {
  const json& golden = analysis_golden().at("numbers");
  NumberMean numbers;
  for (size_t i = 0; i < golden.at("values").size(); ++i)
    numbers.add(golden.at("values")[i].get<std::vector<double>>(), golden.at("queries")[i].get<double>());
  EXPECT_THAT(numbers.mean(), testing::Pointwise(testing::DoubleNear(kTolerance), golden.at("mean").get<std::vector<double>>()));
}

TEST(AnalysisGolden, IntervalsAreThoseOfNumPysBootstrap) {
  const json& golden = analysis_golden().at("interval");
  AlignmentErrors errors(1, 20000, 1);
  for (size_t i = 0; i < golden.at("sentences").size(); ++i) {
    const auto counts = golden.at("sentences")[i].get<std::vector<int64_t>>();
    errors.add(static_cast<int64_t>(i),
               {LinkCounts{.links = counts[0], .sure = counts[1], .in_sure = counts[2], .in_possible = counts[3]}});
  }
  const Interval found = errors.interval(0).value();
  constexpr double kByChance = .003;  // four standard errors of such a quantile of 20,000 draws
  EXPECT_NEAR(found.low, golden.at("interval")[0].get<double>(), kByChance);
  EXPECT_NEAR(found.high, golden.at("interval")[1].get<double>(), kByChance);
}

TEST(AnalysisGolden, SymmetrizedLinksAreThoseOfThePseudoCode) {
  const std::map<std::string, Symmetrization> kinds = {{"intersection", Symmetrization::kIntersection},
                                                       {"union", Symmetrization::kUnion},
                                                       {"grow-diag-final-and", Symmetrization::kGrowDiagFinalAnd}};
  for (const json& golden : analysis_golden().at("symmetrize"))
    for (const auto& [name, kind] : kinds)
      EXPECT_EQ(json(symmetrize(golden.at("forward").get<Links>(), golden.at("backward").get<Links>(), kind)), golden.at(name)) << name;
}

}  // namespace
}  // namespace lacuna
