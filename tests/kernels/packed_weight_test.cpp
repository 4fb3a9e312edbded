#include "kernels/packed_weight.h"

#include "compare.h"

namespace lacuna {
namespace {

class PackedWeightTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, PackedWeightTest, testing::Values(at::kFloat, at::kDouble), name_of_type);

TEST_P(PackedWeightTest, MultipliesLikeLibTorch) {
  for (const int64_t columns : {1, 31, 64, 100})
    for (const int64_t rows : {0, 1, 7, 12, 245}) {
      const Tensor x = spiky({rows, 50}, GetParam()), weight = spiky({columns, 50}, GetParam()), bias = spiky({columns}, GetParam());
      expect_close(PackedWeight(weight).multiply(x, bias), at::linear(x, weight, bias));
      expect_close(PackedWeight(weight).multiply(x, {}), at::linear(x, weight));
    }
}

struct Shape {
  int64_t inputs, outputs;
};
// What the presets multiply with: attention, feed-forward, vocabulary.
constexpr Shape kShapes[] = {{256, 256}, {256, 768}, {256, 1024}, {1024, 256}, {512, 1536}, {2048, 512}, {256, 8000}};

TEST(PackedWeight, GivesARowTheSameBitsAmongAnyNumberOfRows) {
  at::manual_seed(5);
  for (const Shape shape : kShapes) {
    const PackedWeight packed(at::randn({shape.outputs, shape.inputs}));
    const Tensor x = at::randn({512, shape.inputs}), bias = at::randn({shape.outputs}), whole = packed.multiply(x, bias);
    for (int64_t rows = 1; rows <= 512; rows += rows < 32 ? 1 : 31) {
      const Tensor part = packed.multiply(x.narrow(0, 512 - rows, rows), bias);
      ASSERT_TRUE(part.equal(whole.narrow(0, 512 - rows, rows))) << rows << " rows of " << shape.inputs << " -> " << shape.outputs;
    }
  }
}

TEST(PackedWeight, GivesTheSameBitsWithAnyNumberOfThreads) {
  at::manual_seed(5);
  const PackedWeight packed(at::randn({300, 256}));
  const Tensor x = at::randn({100, 256});
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Tensor alone = packed.multiply(x, {});
  at::set_num_threads(3);
  EXPECT_TRUE(alone.equal(packed.multiply(x, {})));
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace lacuna
