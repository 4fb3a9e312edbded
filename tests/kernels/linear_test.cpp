#include "kernels/linear.h"

#include "compare.h"

namespace lacuna {
namespace {

class LinearTest : public KernelTest {
 protected:
  void TearDown() override { set_matmul_backend(before_); }
  MatmulBackend before_ = matmul_backend();
};
INSTANTIATE_TEST_SUITE_P(, LinearTest, testing::Values(at::kFloat, at::kDouble), name_of_type);

TEST_P(LinearTest, EqualsLibTorchsWithEveryBackend) {
  for (const MatmulBackend backend : matmul_backends()) {
    SCOPED_TRACE(name_of(backend));
    set_matmul_backend(backend);
    expect_same([](const Inputs& in) { return lacuna::linear(in[0], in[1], in[2]); },
                [](const Inputs& in) { return at::linear(in[0], in[1], in[2]); },
                {spiky({37, 24}, GetParam()), spiky({40, 24}, GetParam()), spiky({40}, GetParam())});
  }
}

TEST_P(LinearTest, NeedsNoBias) {
  expect_same([](const Inputs& in) { return lacuna::linear(in[0], in[1], Tensor()); },
              [](const Inputs& in) { return at::linear(in[0], in[1]); }, {spiky({5, 24}, GetParam()), spiky({40, 24}, GetParam())});
}

}  // namespace
}  // namespace lacuna
