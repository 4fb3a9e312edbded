#include "kernels/rotation.h"

#include "compare.h"
#include "kernels/reference.h"

namespace lacuna {
namespace {

constexpr int64_t kHeads = 3, kHead = 8;

Rotation rotation_of(std::vector<int32_t> positions, bool is_interleaved, at::ScalarType type) {
  Rotation rotation = rotation_table(64, kHead);
  rotation.cosines = rotation.cosines.to(type);
  rotation.sines = rotation.sines.to(type);
  rotation.positions = std::move(positions);
  rotation.is_interleaved = is_interleaved;
  return rotation;
}

std::vector<int32_t> some_positions() {
  std::vector<int32_t> positions;
  for (int32_t i = 0; i < 40; ++i) positions.push_back(i % 17);
  return positions;
}

class RotationOf : public testing::TestWithParam<at::ScalarType> {};
INSTANTIATE_TEST_SUITE_P(, RotationOf, testing::Values(at::kFloat, at::kDouble),
                         [](const auto& test) { return test.param == at::kFloat ? "Float" : "Double"; });

TEST_P(RotationOf, RowsEqualsItsReference) {
  for (const bool is_interleaved : {false, true})
    for (const int64_t parts : {2, 3}) {
      const Rotation rotation = rotation_of(some_positions(), is_interleaved, GetParam());
      expect_same([&](const Inputs& in) { return turned(in[0], rotation); },
                  [&](const Inputs& in) { return reference::turned(in[0], rotation); }, {spiky({40, parts, kHeads, kHead}, GetParam())});
    }
}

TEST_P(RotationOf, ValuesAndRowsAtTheStartChangesNothing) {
  const Tensor x = at::randn({40, 3, kHeads, kHead}, GetParam()), result = turned(x, rotation_of(some_positions(), true, GetParam()));
  EXPECT_TRUE(result.select(1, 2).equal(x.select(1, 2)));
  EXPECT_TRUE(result[0].equal(x[0]));
  EXPECT_TRUE(result[17].equal(x[17]));
  EXPECT_FALSE(result[1].select(0, 0).equal(x[1].select(0, 0)));
}

// By NumPy: (1 + 2i) e^(3i) and (3 + 4i) e^(3i / 100), the products of the pairs as complex numbers.
TEST(Rotation, IsAProductOfComplexNumbers) {
  const double expected[] = {-1.27223251272018, -1.8388649851410237, 2.87866810043698, 4.088186635603437};
  for (const bool is_interleaved : {false, true}) {
    Rotation rotation = rotation_table(4, 4);
    rotation.positions = {3};
    rotation.is_interleaved = is_interleaved;
    const std::vector<int64_t> order = is_interleaved ? std::vector<int64_t>{0, 1, 2, 3} : std::vector<int64_t>{0, 2, 1, 3};
    Tensor x = at::zeros({1, 2, 1, 4}, at::kDouble);
    for (int64_t i = 0; i < 4; ++i) x[0][0][0][order[static_cast<size_t>(i)]] = i + 1;
    const Tensor result = turned(x, rotation)[0][0][0];
    for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(result[order[static_cast<size_t>(i)]].item<double>(), expected[i], 1e-12) << i;
  }
}

TEST(Rotation, LeavesProductsThatDependOnTheDistanceAlone) {
  at::manual_seed(3);
  const Tensor q = at::randn({kHeads, kHead}, at::kDouble), k = at::randn({kHeads, kHead}, at::kDouble);
  const auto product = [&](int32_t query, int32_t key) {
    const Tensor x = at::stack({q, k}).unsqueeze(0).repeat({2, 1, 1, 1}), result = turned(x, rotation_of({query, key}, true, at::kDouble));
    return (result[0][0] * result[1][1]).sum().item<double>();
  };
  EXPECT_NEAR(product(3, 1), product(40, 38), 1e-12);
  EXPECT_GT(std::abs(product(3, 1) - product(3, 2)), 1e-3);
}

TEST(Rotation, OfBf16IsThatOfFloatRounded) {
  const Tensor x = at::randn({40, 3, kHeads, kHead}).to(at::kBFloat16);
  const Rotation rotation = rotation_of(some_positions(), true, at::kFloat);
  EXPECT_TRUE(turned(x, rotation).equal(turned(x.to(at::kFloat), rotation).to(at::kBFloat16)));
}

}  // namespace
}  // namespace lacuna
