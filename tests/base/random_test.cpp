#include "base/random.h"

#include <gmock/gmock.h>

#include <vector>

namespace lacuna {
namespace {

using testing::ElementsAre;

// The known answers of Random123 for philox4x32-10.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_THAT(philox(0, 0, 0).word, ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  EXPECT_THAT(philox(~0ull, ~0ull, ~0ull).word, ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(philox(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull).word,
              ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

TEST(RandomStream, DrawsEvenlyBelowABound) {
  RandomStream random(1);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts.at(random.next_below(7));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
}

TEST(RandomStream, TakesAnyBound) {
  RandomStream random(2);
  EXPECT_EQ(random.next_below(1), 0u);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.next_below((1ull << 63) + 1), (1ull << 63) + 1);
}

TEST(RandomStream, DrawsFractionsBelowOne) {
  RandomStream random(3);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double x = random.next_unit();
    ASSERT_TRUE(x >= 0 && x < 1);
    sum += x;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

TEST(RandomStream, IsAnotherForEachKeyAndStream) {
  RandomStream one(1), other_key(2), other_stream(1, 1), same(1);
  const uint32_t bits = one.next_bits();
  EXPECT_NE(bits, other_key.next_bits());
  EXPECT_NE(bits, other_stream.next_bits());
  EXPECT_EQ(bits, same.next_bits());
}

}  // namespace
}  // namespace lacuna
