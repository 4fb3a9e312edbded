#include "compare.h"
#include "kernels/layer_products.h"
#include "kernels/layers.h"
#include "kernels/matmul.h"
#include "kernels/profile.h"

namespace lacuna {
namespace {

class LinearTest : public KernelTest {
 protected:
  void TearDown() override {
    set_matmul_backend(before_);
    KernelTest::TearDown();
  }
  MatmulBackend before_ = matmul_backend();
};
INSTANTIATE_TEST_SUITE_P(, LinearTest, testing::Values(KernelCase{at::kFloat, 0}, KernelCase{at::kDouble, 0}), name_of_type);

TEST_P(LinearTest, EqualsLibTorchsWithEveryBackend) {
  for (const MatmulBackend backend : matmul_backends()) {
    SCOPED_TRACE(name_of(backend));
    set_matmul_backend(backend);
    expect_same([](const Inputs& in) { return lacuna::linear(in[0], in[1], in[2]); },
                [](const Inputs& in) { return at::linear(in[0], in[1], in[2]); },
                {spiky({37, 24}, type()), spiky({40, 24}, type()), spiky({40}, type())});
  }
}

TEST_P(LinearTest, NeedsNoBias) {
  expect_same([](const Inputs& in) { return lacuna::linear(in[0], in[1], Tensor()); },
              [](const Inputs& in) { return at::linear(in[0], in[1]); }, {spiky({5, 24}, type()), spiky({40, 24}, type())});
}

TEST_P(LinearTest, CountsAProductOnceInAProfileWithEveryBackend) {
  const Tensor a = at::randn({70, 24}), b = at::randn({24, 40});
  for (const MatmulBackend backend : matmul_backends())
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      SCOPED_TRACE(name_of(backend) + std::string(", ") + name_of(precision));
      set_matmul_backend(backend);
      Profile profile;
      const auto nothing = [](const float*, int64_t, int64_t) {};
      const bool rounds = precision == Precision::kBf16;
      matmul_by_row_blocks(rounds ? rounded_to_bf16(a) : a, rounds ? rounded_to_bf16(b) : b, {}, 32, nothing, precision);
      EXPECT_EQ(profile.calls(ProfilePart::kProducts, false), 1);
      ASSERT_EQ(profile.products().size(), 1U);
      EXPECT_EQ(profile.products().begin()->second, 1);
    }
}

}  // namespace
}  // namespace lacuna
