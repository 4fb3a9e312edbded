#include "kernels/parallel.h"

#include <gtest/gtest.h>

#include <vector>

namespace lacuna {
namespace {

/// How often each of `count` comes, by parts of at least `least`.
std::vector<int> visits(int64_t count, int64_t least) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
  for_parts(count, least, [&](int64_t begin, int64_t end) {
    EXPECT_LT(begin, end);
    EXPECT_GE(end - begin, std::min(least, count)) << begin << " to " << end;
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  });
  return {seen.begin(), seen.end()};
}

TEST(ForParts, CoversEachElementOnce) {
  const int before = at::get_num_threads();
  for (const int threads : {1, 2, 3, 5, 16, 70}) {
    at::set_num_threads(threads);
    for (const int64_t count : {0, 1, 7, 17, 64, 1000})
      for (const int64_t least : {1, 16, 5000})
        EXPECT_EQ(visits(count, least), std::vector<int>(static_cast<size_t>(count), 1)) << count << ", " << threads << " threads";
  }
  at::set_num_threads(before);
}

TEST(ForParts, DoesAllAtOnceWithinAnother) {
  for_parts(2, 1, [](int64_t begin, int64_t end) {
    if (!at::in_parallel_region()) return;  // one thread only
    for (int64_t i = begin; i < end; ++i) {
      int parts = 0;
      for_parts(100, 1, [&](int64_t /*first*/, int64_t /*last*/) { ++parts; });
      EXPECT_EQ(parts, 1);
    }
  });
}

TEST(ForParts, HandsOnWhatAPartThrows) {
  EXPECT_THROW(for_parts(100, 1, [](int64_t /*begin*/, int64_t /*end*/) { throw std::runtime_error("no"); }), std::runtime_error);
}

}  // namespace
}  // namespace lacuna
