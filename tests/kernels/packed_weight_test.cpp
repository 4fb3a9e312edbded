#include "kernels/packed_weight.h"

#include <cmath>
#include <map>

#include "base/error.h"
#include "compare.h"

namespace lacuna {
namespace {

class PackedWeightTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, PackedWeightTest, testing::Values(KernelCase{at::kFloat, 0}, KernelCase{at::kDouble, 0}), name_of_type);

TEST_P(PackedWeightTest, MultipliesLikeLibTorch) {
  for (const int64_t columns : {1, 31, 64, 100})
    for (const int64_t rows : {0, 1, 7, 12, 245}) {
      const Tensor x = spiky({rows, 50}, type()), weight = spiky({columns, 50}, type()), bias = spiky({columns}, type());
      expect_close(PackedWeight(weight).multiply(x, bias), at::linear(x, weight, bias));
      expect_close(PackedWeight(weight).multiply(x, {}), at::linear(x, weight));
    }
}

TEST_P(PackedWeightTest, EndsInAnActivation) {
  const Tensor x = spiky({14, 50}, type()), weight = spiky({33, 50}, type()), bias = spiky({33}, type());
  const Tensor plain = at::linear(x, weight, bias);
  expect_close(PackedWeight(weight).multiply(x, bias, ProductEnd::kRelu), at::relu(plain));
  expect_close(PackedWeight(weight).multiply(x, bias, ProductEnd::kGelu), at::gelu(plain));
  expect_close(PackedWeight(weight).multiply(x, bias, ProductEnd::kSwish), at::silu(plain));
}

constexpr Precision kPrecisions[] = {Precision::kFp32, Precision::kBf16, Precision::kInt8};

/// Calls f(precision, kernel, name) for everything that this machine can run.
void for_each_kernel(const std::function<void(Precision, const PackedKernel&, const std::string&)>& f) {
  for (const Precision precision : kPrecisions)
    for (const PackedKernel& kernel : packed_kernels(precision))
      f(precision, kernel, std::string(name_of(precision)) + " by " + name_of(kernel.target));
}

Tensor as_bf16(const Tensor& rows) {
  return rows.to(at::kBFloat16).to(rows.scalar_type());
}

/// What rows of bytes keep of x: whole steps from a row's smallest number (or 0) to its largest.
Tensor in_levels(const Tensor& x, int64_t levels) {
  const Tensor below = (-x.amin(1, true)).clamp_min(0), extent = x.amax(1, true).clamp_min(0) + below;
  const Tensor zero = at::round(below * (levels / extent));
  return ((at::round(x * (levels / extent)) + zero).clamp(0, levels) - zero).to(at::kDouble) * (extent / levels).to(at::kDouble);
}

/// What the kernel keeps of a weight in bytes.
Tensor kept_bytes(const Tensor& weight, const PackedKernel& kernel) {
  return PackedWeight(weight, Precision::kInt8, &kernel).multiply(at::eye(weight.size(1)), {}).t();
}

Tensor double_product(const Tensor& x, const Tensor& weight) {
  return at::linear(x.to(at::kDouble), weight.to(at::kDouble));
}

/// The product in double of what the precision keeps of the factors.
Tensor product_in(Precision precision, const PackedKernel& kernel, const Tensor& x, const Tensor& weight) {
  if (precision == Precision::kInt8) return double_product(in_levels(x, kernel.row_levels), kept_bytes(weight, kernel));
  if (precision == Precision::kBf16) return double_product(as_bf16(x), as_bf16(weight));
  return double_product(x, weight);
}

/// The form in which a GPU keeps a weight for products in bf16.
TEST(PackedWeight, InBf16MultipliesRoundedRowsAndSumsInFloat) {
  at::manual_seed(5);
  const Tensor x = at::randn({45, 50}), weight = at::randn({31, 50}).to(at::kBFloat16), bias = at::randn({31});
  const Tensor expected = double_product(as_bf16(x), weight) + bias.to(at::kDouble);
  const PackedWeight packed(weight);
  EXPECT_FALSE(packed.is_copy());
  EXPECT_EQ(packed.multiply(x, bias).scalar_type(), at::kFloat);
  expect_close(packed.multiply(x, bias), expected, "bias");
  expect_close(packed.multiply(x, {}, ProductEnd::kRelu), (expected - bias.to(at::kDouble)).relu(), "relu");
}

TEST(PackedWeight, OfEachPrecisionMultipliesTheRoundedFactors) {
  at::manual_seed(5);
  for_each_kernel([](Precision precision, const PackedKernel& kernel, const std::string& name) {
    for (const int64_t depth : {1, 50, 256})
      for (const int64_t columns : {1, 31, 64, 100})
        for (const int64_t rows : {0, 1, 7, 16, 17, 45, 245}) {
          const Tensor x = at::randn({rows, depth}), weight = at::randn({columns, depth}), bias = at::randn({columns});
          const Tensor expected = product_in(precision, kernel, x, weight) + bias.to(at::kDouble);
          expect_close(PackedWeight(weight, precision, &kernel).multiply(x, bias), expected, name);
        }
  });
}

TEST(PackedWeight, OfBytesHasNoMoreInputsThanItsSumsHold) {
  EXPECT_NO_THROW(PackedWeight(at::ones({1, 66311}), Precision::kInt8));
  EXPECT_THROW(PackedWeight(at::ones({1, 66312}), Precision::kInt8), ConfigError);
  EXPECT_NO_THROW(PackedWeight(at::ones({1, 66312}), Precision::kBf16));
}

TEST(PackedWeight, OfBytesHasTheSameBitsByAllKernelsOfTheSameLevels) {
  at::manual_seed(5);
  const Tensor x = at::randn({45, 300}), weight = at::randn({100, 300});
  std::map<int32_t, Tensor> results;
  for (const PackedKernel& kernel : packed_kernels(Precision::kInt8)) {
    const Tensor result = PackedWeight(weight, Precision::kInt8, &kernel).multiply(x, {});
    EXPECT_TRUE(results.emplace(kernel.row_levels, result).first->second.equal(result)) << name_of(kernel.target);
  }
}

TEST(PackedWeight, OfBytesKeepsAnElementToWithinHalfAStep) {
  at::manual_seed(5);
  const Tensor weight = at::randn({100, 1024}), largest = weight.abs().amax(1, true);
  for (const PackedKernel& kernel : packed_kernels(Precision::kInt8)) {
    // Without short sums it is rounded once, to 127 levels; with them again, to at least half as many.
    const float steps = kernel.fit_short_sums == nullptr ? .5f / kWeightLevels : 1.5f / kWeightLevels;
    EXPECT_LT(((kept_bytes(weight, kernel) - weight).abs() / largest).max().item<float>(), 1.0001f * steps) << name_of(kernel.target);
  }
}

TEST(PackedWeight, OfBytesHasRoomForTheLargestSums) {
  at::manual_seed(5);
  const Tensor ones = at::ones({64, 256}), signs = at::randint(2, {64, 256}) * 2. - 1.,
               alternating = at::where(at::arange(256) % 2 == 0, 1., -1.);
  for (const PackedKernel& kernel : packed_kernels(Precision::kInt8))
    for (const Tensor& weight : {ones, -ones, signs, ones * alternating})
      for (const Tensor& x : {ones, -ones, signs, weight})
        expect_close(PackedWeight(weight, Precision::kInt8, &kernel).multiply(x, {}),
                     double_product(in_levels(x, kernel.row_levels), weight), name_of(kernel.target));
}

TEST(PackedWeight, KeepsWhatIsNotANumber) {
  for (const float bad : {std::nanf(""), INFINITY})
    for (const Precision precision : kPrecisions) {
      const Tensor x = at::ones({3, 20}), weight = at::ones({5, 20});
      x[1][7] = bad;
      for (const ProductEnd end : {ProductEnd::kNone, ProductEnd::kRelu, ProductEnd::kGelu, ProductEnd::kSwish}) {
        const Tensor result = PackedWeight(weight, precision).multiply(x, {}, end);
        EXPECT_FALSE(std::isfinite(result[1][0].item<float>())) << name_of(precision);
        EXPECT_NEAR(result[2][0].item<float>(), 20, 1e-4) << name_of(precision);
      }
      weight[2][3] = bad;
      EXPECT_FALSE(std::isfinite(PackedWeight(weight, precision).multiply(x, {})[0][2].item<float>())) << name_of(precision);
    }
}

TEST(PackedWeight, OfZerosIsZero) {
  for (const Precision precision : kPrecisions) {
    const Tensor ones = at::ones({3, 20}), zeros = at::zeros({3, 20});
    EXPECT_TRUE(PackedWeight(zeros, precision).multiply(ones, {}).equal(at::zeros({3, 3}))) << name_of(precision);
    EXPECT_TRUE(PackedWeight(ones, precision).multiply(zeros, {}).equal(at::zeros({3, 3}))) << name_of(precision);
  }
}

struct Shape {
  int64_t inputs, outputs;
};
// What the presets multiply with: attention, feed-forward, vocabulary.
constexpr Shape kShapes[] = {{256, 256}, {256, 768}, {256, 1024}, {1024, 256}, {512, 1536}, {2048, 512}, {256, 8000}};

TEST(PackedWeight, GivesARowTheSameBitsAmongAnyNumberOfRows) {
  at::manual_seed(5);
  for (const Precision precision : kPrecisions)
    for (const Shape shape : kShapes) {
      const PackedWeight packed(at::randn({shape.outputs, shape.inputs}), precision);
      const Tensor x = at::randn({512, shape.inputs}), bias = at::randn({shape.outputs}), whole = packed.multiply(x, bias);
      for (int64_t rows = 1; rows <= 512; rows += rows < 32 ? 1 : 31) {
        const Tensor part = packed.multiply(x.narrow(0, 512 - rows, rows), bias);
        ASSERT_TRUE(part.equal(whole.narrow(0, 512 - rows, rows)))
            << name_of(precision) << ": " << rows << " rows of " << shape.inputs << " -> " << shape.outputs;
      }
    }
}

TEST(PackedWeight, GivesARowTheSameBitsAmongAnyNumberOfRowsOnEveryMachine) {
  at::manual_seed(5);
  for_each_kernel([](Precision precision, const PackedKernel& kernel, const std::string& name) {
    const PackedWeight packed(at::randn({70, 96}), precision, &kernel);
    const Tensor x = at::randn({64, 96}), whole = packed.multiply(x, {});
    for (int64_t rows = 1; rows <= 64; ++rows)
      ASSERT_TRUE(packed.multiply(x.narrow(0, 64 - rows, rows), {}).equal(whole.narrow(0, 64 - rows, rows))) << name << ", " << rows;
  });
}

// Long rows too, which are taken fewer at a time.
TEST(PackedWeight, OfRowsWithManyZerosGivesTheSameBits) {
  at::manual_seed(5);
  for_each_kernel([](Precision precision, const PackedKernel& kernel, const std::string& name) {
    for (const int64_t depth : {1, 50, 96, 1024, 2048}) {
      const PackedWeight packed(at::randn({70, depth}), precision, &kernel);
      const Tensor bias = at::randn({70});
      Tensor x = at::relu(at::randn({203, depth}) - .7);
      x.narrow(0, 8, 9).zero_();
      const Tensor whole = packed.multiply(x, bias);
      for (const int64_t rows : {0, 1, 2, 3, 4, 5, 9, 64, 203}) {
        const Tensor part = x.narrow(0, 203 - rows, rows), result = packed.multiply(part, bias, ProductEnd::kNone, RowZeros::kMany);
        ASSERT_TRUE(result.equal(whole.narrow(0, 203 - rows, rows))) << name << ", " << rows << " rows of " << depth;
      }
      ASSERT_TRUE(packed.multiply(x, bias, ProductEnd::kGelu, RowZeros::kMany).equal(packed.multiply(x, bias, ProductEnd::kGelu))) << name;
      x[5][depth / 2] = std::nanf("");
      EXPECT_TRUE(packed.multiply(x, bias, ProductEnd::kNone, RowZeros::kMany)[5].isnan().all().item<bool>()) << name;
    }
  });
}

TEST(PackedWeight, GivesTheSameBitsWithAnyNumberOfThreads) {
  at::manual_seed(5);
  const int threads = at::get_num_threads();
  for (const Precision precision : kPrecisions) {
    const PackedWeight packed(at::randn({300, 256}), precision);
    const Tensor x = at::randn({400, 256});
    at::set_num_threads(1);
    const Tensor alone = packed.multiply(x, {});
    at::set_num_threads(3);
    EXPECT_TRUE(alone.equal(packed.multiply(x, {}))) << name_of(precision);
    at::set_num_threads(threads);
  }
}

}  // namespace
}  // namespace lacuna
