#include <fstream>
#include <nlohmann/json.hpp>

#include "attention_contract.h"

// Values of PyTorch and of the package `entmax` (tests/golden/make_attention_golden.py).
namespace lacuna::contract {
namespace {

// 1e-6 is the contract's for float; the package's own bisection in double ends within 1e-12.
double tolerance(Engine engine) {
  return is_double(engine) ? 1e-10 : kFloatWeights;
}

void expect_near(const Row& found, const Row& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t j = 0; j < found.size(); ++j)
    ASSERT_NEAR(found[j], expected[j], tolerance * std::max(1.0, std::abs(expected[j]))) << "key " << j;
}

TEST(AttentionGolden, WeightsAndGradientsAreThoseOfPyTorchAndEntmax) {
  std::ifstream file(LACUNA_SOURCE_DIR "/tests/golden/attention.json");
  const auto cases = nlohmann::json::parse(file);
  ASSERT_GT(cases.size(), 100u);
  for (const auto& golden : cases) {
    const Variant one = variant(golden.at("type"), golden.at("options"));
    const Row scores = golden.at("scores"), direction = golden.at("weights_gradient"), numbers = golden.value("numbers", Row());
    for (const Engine engine : engines()) {
      SCOPED_TRACE(one.name() + ", " + std::to_string(scores.size()) + " keys, " + name_of(engine));
      expect_near(weights_of(one, engine, scores, numbers), golden.at("weights"), tolerance(engine));
      const RowGradients gradients = gradients_of(one, engine, scores, direction, numbers);
      expect_near(gradients.scores, golden.at("scores_gradient"), is_double(engine) ? 1e-9 : kFloatGradients);
      expect_near(gradients.numbers, golden.value("numbers_gradient", Row()), is_double(engine) ? 1e-9 : kFloatNumberGradients);
    }
  }
}

}  // namespace
}  // namespace lacuna::contract
