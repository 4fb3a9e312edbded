#include "kernels/dropout.h"

#include "base/random.h"
#include "compare.h"
#include "kernels/layers.h"
#include "kernels/row_kernels.h"

namespace lacuna {
namespace {

Tensor drop_ones(const Dropout& dropout, int64_t columns) {
  return activation_dropout(at::ones({dropout.shape->num_tokens(), columns}, at::kDouble), Activation::kRelu, dropout);
}

/// A draw for each feature, and sentence after sentence.
Tensor plain_factors(const Dropout& dropout, int64_t columns) {
  const DropoutRows rows = dropout.rows();
  Tensor factors = at::empty({dropout.shape->num_tokens(), columns}, at::kDouble);
  double* out = factors.mutable_data_ptr<double>();
  for (int64_t b = 0; b < rows.sentences; ++b)
    for (int32_t position = 0; position < dropout.shape->length(b); ++position)
      for (int64_t feature = 0; feature < columns; ++feature) {
        const uint64_t block = static_cast<uint64_t>(feature / 128 * 16 + feature % 16);
        const PhiloxBlock bits = philox(rows.key, static_cast<uint64_t>(position) << 32 | block, static_cast<uint64_t>(rows.ids[b]));
        const int64_t half = feature % 128 / 16;
        const uint32_t decision = half % 2 == 0 ? bits.word[half / 2] & 0xffff : bits.word[half / 2] >> 16;
        *out++ = decision >= rows.threshold ? rows.scale : 0;
      }
  return factors;
}

/// What a thread of a GPU does, too.
TEST(Dropout, FactorsAreThoseOfADrawForEachFeature) {
  const auto between_empty_ones = std::make_shared<const RaggedShape>(RaggedShape::of_lengths({0, 4, 0, 0, 6, 0}, {3, 8, 2, 9, 21, 5}));
  for (const Dropout& dropout : {a_dropout(0.3, 100), Dropout{0.1, 7, between_empty_ones}})
    for (const int64_t columns : {1, 5, 16, 128, 200, 300})
      EXPECT_TRUE(dropout_factors(dropout, columns, at::kDouble).equal(plain_factors(dropout, columns))) << columns;
}

TEST(Dropout, OfTheKernelsIsThatOfTheReference) {
  const Dropout dropout = a_dropout(0.3, 20);
  for (const int64_t columns : {1, 5, 128, 200})
    EXPECT_TRUE(drop_ones(dropout, columns).equal(dropout_factors(dropout, columns, at::kDouble)));
}

TEST(Dropout, OfAllInstructionSetsIsTheSame) {
  const Dropout dropout = a_dropout(0.3, 20);
  const Tensor ones = at::ones({20, 300});
  for (const RowKernels<float>* kernels : all_row_kernels<float>()) {
    const Tensor dropped = at::empty_like(ones);
    kernels->drop({ones.size(1), ones.const_data_ptr<float>(), dropout.rows(), dropped.mutable_data_ptr<float>()}, 0, ones.size(0));
    EXPECT_TRUE(dropped.equal(dropout_factors(dropout, ones.size(1), at::kFloat))) << name_of(kernels->target);
  }
}

TEST(Dropout, DropsTheShareItIsAskedFor) {
  const Dropout dropout = a_dropout(0.3, 1000);
  const Tensor kept = drop_ones(dropout, 512).ne(0).to(at::kDouble);
  EXPECT_NEAR(kept.mean().item<double>(), 0.7, 4 * std::sqrt(0.21 / 512000));
  EXPECT_LT((kept.mean(0) - 0.7).abs().max().item<double>(), 5 * std::sqrt(0.21 / 1000));  // each feature
  EXPECT_LT((kept.mean(1) - 0.7).abs().max().item<double>(), 5 * std::sqrt(0.21 / 512));   // each row
}

TEST(Dropout, KeepsTheMean) {
  EXPECT_NEAR(drop_ones(a_dropout(0.1, 1000), 512).mean().item<double>(), 1, 0.003);
}

TEST(Dropout, OfASentenceDoesNotDependOnItsBatch) {
  const Dropout batch = {0.5, 99, std::make_shared<const RaggedShape>(RaggedShape::of_lengths({4, 6}, {8, 21}))};
  const Dropout alone = {0.5, 99, std::make_shared<const RaggedShape>(RaggedShape::of_lengths({6}, {21}))};
  EXPECT_TRUE(drop_ones(batch, 256).narrow(0, 4, 6).equal(drop_ones(alone, 256)));
}

TEST(Dropout, DiffersBySentenceKeyAndPosition) {
  const auto mask = [](uint64_t key, int64_t id) {
    return drop_ones({0.5, key, std::make_shared<const RaggedShape>(RaggedShape::of_lengths({2}, {id}))}, 256);
  };
  EXPECT_FALSE(mask(1, 1).equal(mask(2, 1)));
  EXPECT_FALSE(mask(1, 1).equal(mask(1, 2)));
  EXPECT_FALSE(mask(1, 1)[0].equal(mask(1, 1)[1]));
}

TEST(Dropout, OfRateZeroDropsNothing) {
  EXPECT_TRUE(drop_ones(a_dropout(0, 9), 30).equal(at::ones({9, 30}, at::kDouble)));
}

}  // namespace
}  // namespace lacuna
