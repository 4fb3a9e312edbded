#include "kernels/activation.h"

#include "compare.h"
#include "kernels/reference.h"

namespace lacuna {
namespace {

class ActivationDropout : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, ActivationDropout, testing::Values(at::kFloat, at::kDouble), name_of_type);

TEST_P(ActivationDropout, EqualsItsReference) {
  for (const bool is_gelu : {false, true})
    for (const double rate : {0.0, 0.4}) {
      const Dropout dropout = a_dropout(rate, 50);
      expect_same([&](const Inputs& in) { return activation_dropout(in[0], is_gelu, dropout); },
                  [&](const Inputs& in) { return reference::activation_dropout(in[0], is_gelu, dropout); }, {spiky({50, 200}, GetParam())});
    }
}

}  // namespace
}  // namespace lacuna
