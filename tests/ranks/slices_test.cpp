#include "ranks/slices.h"

#include <gtest/gtest.h>

#include <numeric>

namespace lacuna {
namespace {

std::vector<int64_t> even_chunks(int64_t begin, int64_t count, int64_t size) {
  std::vector<int64_t> chunks;
  for (int64_t i = 0; i <= count; ++i) chunks.push_back(begin + i * size);
  return chunks;
}

TEST(Slices, CoverTheBufferInOrder) {
  for (const int ranks : {1, 2, 3, 7, 64}) {
    const Slices slices({even_chunks(0, 100, 10), {1000, 1003, 1400, 1401}}, ranks, 250);
    int64_t end = 0;
    for (size_t bucket = 0; bucket < slices.num_buckets(); ++bucket) {
      EXPECT_EQ(slices.bucket(bucket).begin, end);
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(slices.slice(bucket, rank).begin, end);
        end = slices.slice(bucket, rank).end;
        EXPECT_LE(slices.slice(bucket, rank).begin, end);
      }
      EXPECT_EQ(slices.bucket(bucket).end, end);
    }
    EXPECT_EQ(end, 1401);
  }
}

TEST(Slices, ABucketIsOfOneGroupAndOfTheSizeAskedFor) {
  const Slices slices({even_chunks(0, 10, 10), even_chunks(100, 3, 10)}, 2, 40);
  EXPECT_EQ(slices.num_buckets(), 4u);
  EXPECT_EQ(slices.bucket(0), (Slice{0, 40}));
  EXPECT_EQ(slices.bucket(2), (Slice{80, 100}));
  EXPECT_EQ(slices.bucket(3), (Slice{100, 130}));
  EXPECT_EQ(slices.first_bucket(0), 0u);
  EXPECT_EQ(slices.first_bucket(1), 3u);
  EXPECT_EQ(slices.first_bucket(2), 4u);
}

TEST(Slices, AreAboutAsLongForEveryRankAndCutBetweenChunks) {
  const Slices slices({even_chunks(0, 64, 16384)}, 3, 1 << 20);
  ASSERT_EQ(slices.num_buckets(), 1u);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(slices.slice(0, rank).begin % 16384, 0);
    EXPECT_EQ(slices.slice(0, rank).size(), 16384 * slices.num_chunks(0, rank));
    EXPECT_NEAR(static_cast<double>(slices.num_chunks(0, rank)), 64 / 3.0, 1);
  }
}

TEST(Slices, AreEmptyForSomeRanksWhereChunksAreFew) {
  const Slices slices({{0, 100, 110}}, 4, 1000);
  int64_t chunks = 0;
  for (int rank = 0; rank < 4; ++rank) chunks += slices.num_chunks(0, rank);
  EXPECT_EQ(chunks, 2);
}

}  // namespace
}  // namespace lacuna
