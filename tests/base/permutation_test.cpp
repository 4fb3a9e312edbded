#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace lacuna {
namespace {

std::vector<uint64_t> order(uint64_t size, uint64_t key) {
  const Permutation permutation(size, key);
  std::vector<uint64_t> elements;
  for (uint64_t i = 0; i < size; ++i) elements.push_back(permutation.at(i));
  return elements;
}

TEST(Permutation, NamesEveryElementOnce) {
  for (const uint64_t size : {1, 2, 3, 4, 5, 16, 17, 1000, 4097}) {
    for (uint64_t key = 0; key < 5; ++key) {
      std::vector<uint64_t> elements = order(size, key);
      std::sort(elements.begin(), elements.end());
      for (uint64_t i = 0; i < size; ++i) ASSERT_EQ(elements[i], i) << "size " << size;
    }
  }
}

TEST(Permutation, IsAnotherForEachKey) {
  EXPECT_EQ(order(1000, 1), order(1000, 1));
  EXPECT_NE(order(1000, 1), order(1000, 2));
}

TEST(Permutation, SendsEachPositionEverywhere) {
  // 10 elements, 20,000 keys: each element at each position 2,000 times, standard deviation 42.
  std::vector<std::vector<int>> counts(10, std::vector<int>(10));
  for (uint64_t key = 0; key < 20000; ++key) {
    const Permutation permutation(10, mix(key, 7));
    for (uint64_t i = 0; i < 10; ++i) ++counts[i][permutation.at(i)];
  }
  for (const auto& row : counts)
    for (const int count : row) EXPECT_NEAR(count, 2000, 250);
}

TEST(Permutation, LeavesNeighboursNoNearerThanChance) {
  const Permutation permutation(100000, 3);
  double distance = 0;
  for (uint64_t i = 0; i + 1 < 100000; ++i)
    distance += std::abs(static_cast<double>(permutation.at(i)) - static_cast<double>(permutation.at(i + 1)));
  EXPECT_NEAR(distance / 99999, 100000 / 3.0, 400);
}

}  // namespace
}  // namespace lacuna
