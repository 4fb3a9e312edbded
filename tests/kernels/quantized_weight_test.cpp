#include "compare.h"
#include "kernels/packed_weight.h"

namespace lacuna {
namespace {

class QuantizedWeightTest : public testing::Test {
 protected:
  /// Rows whose largest elements are of many magnitudes.
  const Tensor weight_ = spiky({5000, 37}, at::kFloat) * at::exp(at::linspace(-20, 20, 5000)).unsqueeze(1);
};

TEST_F(QuantizedWeightTest, ARowIsItsBytesTimesItsScale) {
  const QuantizedWeight quantized = lacuna::quantized(at::tensor({1.f, -2.54f, 0.019f, 0.f, 0.f, 0.f}).view({2, 3}));
  EXPECT_TRUE(at::equal(quantized.bytes, at::tensor({50, -127, 1, 0, 0, 0}, at::kChar).view({2, 3}))) << quantized.bytes;
  EXPECT_FLOAT_EQ(quantized.scales[0].item<float>(), 0.02f);
  EXPECT_EQ(quantized.scales[1].item<float>(), 0);
}

TEST_F(QuantizedWeightTest, IsWithinHalfAScaleOfTheWeight) {
  const QuantizedWeight quantized = lacuna::quantized(weight_);
  const Tensor error = (dequantized(quantized) - weight_).abs() / quantized.scales.unsqueeze(1);
  EXPECT_LE(error.max().item<float>(), 0.50002f);
}

TEST_F(QuantizedWeightTest, RoundedAnewHasTheSameBits) {
  const QuantizedWeight once = quantized(weight_), twice = quantized(dequantized(once));
  EXPECT_TRUE(at::equal(once.bytes, twice.bytes));
  EXPECT_TRUE(at::equal(once.scales, twice.scales));
}

TEST_F(QuantizedWeightTest, MultipliesLikeTheWeightInItsFormat) {
  const Tensor x = spiky({7, 37}, at::kFloat);
  for (const Precision format : {Precision::kBf16, Precision::kInt8}) {
    const Tensor kept = rounded(weight_, format);
    EXPECT_FALSE(at::equal(kept, weight_)) << name_of(format);
    EXPECT_TRUE(at::equal(PackedWeight(kept, format).multiply(x, {}), PackedWeight(weight_, format).multiply(x, {}))) << name_of(format);
  }
}

}  // namespace
}  // namespace lacuna
