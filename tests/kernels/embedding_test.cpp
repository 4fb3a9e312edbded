#include "kernels/embedding.h"

#include "compare.h"
#include "kernels/reference.h"

namespace lacuna {
namespace {

class Embed : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, Embed, testing::ValuesIn(kernel_cases()), name_of_case);

TEST_P(Embed, EqualsItsReference) {
  const Tensor ids = at::randint(11, {60}, at::kLong);  // most ids come several times
  const Tensor positions = at::arange(60, at::kInt).remainder(20);
  for (const double rate : {0.0, 0.3}) {
    const Dropout dropout = a_dropout(rate, 60);
    const auto with = [&](auto kernel) {
      return [=](const Inputs& in) { return kernel(in[0], ids, 8.0, in[1], positions, dropout, kNoId); };
    };
    expect_same(with(embed), with(reference::embed), {spiky({13, 64}, type()), spiky({25, 64}, type())});
  }
}

TEST_P(Embed, NeedsNoPositions) {
  const Tensor ids = at::randint(11, {9}, at::kLong);
  const auto with = [&](auto kernel) {
    return [=](const Inputs& in) { return kernel(in[0], ids, 8.0, Tensor(), Tensor(), Dropout(), kNoId); };
  };
  expect_same(with(embed), with(reference::embed), {spiky({13, 64}, type())});
}

TEST_P(Embed, OfTheZeroIdIsThePositionAlone) {
  constexpr int64_t kZeroId = 3;
  const Tensor ids = at::randint(7, {60}, at::kLong);
  const Tensor positions = at::arange(60, at::kInt).remainder(20);
  const Dropout dropout = a_dropout(0.3, 60);
  const auto with = [&](auto kernel) {
    return [=](const Inputs& in) { return kernel(in[0], ids, 8.0, in[1], positions, dropout, kZeroId); };
  };
  const Tensor table = spiky({13, 64}, type()), of_positions = spiky({25, 64}, type());
  expect_same(with(embed), with(reference::embed), {table, of_positions});
  const Tensor plain = embed(table.index_fill(0, at::tensor({kZeroId}), 0), ids, 8.0, of_positions, positions, dropout);
  EXPECT_TRUE(with(embed)({table, of_positions}).equal(plain));
  const Tensor learned = table.clone().requires_grad_(true);
  with(embed)({learned, of_positions}).sum().backward();
  EXPECT_EQ(learned.grad()[kZeroId].abs().max().item<double>(), 0);
  EXPECT_GT(learned.grad()[kZeroId + 1].abs().max().item<double>(), 0);
}

TEST(EmbedIds, OutsideOfTheTableAreRefused) {
  const Tensor table = at::zeros({3, 4});
  EXPECT_THROW(embed(table, at::tensor({int64_t{3}}), 1, {}, {}, {}), ShapeError);
  EXPECT_THROW(embed(table, at::tensor({int64_t{-1}}), 1, {}, {}, {}), ShapeError);
}

}  // namespace
}  // namespace lacuna
