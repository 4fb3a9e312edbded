#include <gtest/gtest.h>

#include "attention/attention.h"
#include "attention/registry.h"
#include "config/yaml.h"

// The contract tests, which this program holds too, loop over the registry; here is that the sample is in it.
namespace lacuna {
namespace {

TEST(SampleType, IsKnownToTheConfiguration) {
  const AttentionPlan plan = resolve_attention(parse_yaml("cross: sigmoid", "test"), 1, 1, 2);
  EXPECT_EQ(plan.cross[0].type->name(), "sigmoid");
  EXPECT_EQ(plan.decoder_self[0].type->name(), "softmax");
}

}  // namespace
}  // namespace lacuna
