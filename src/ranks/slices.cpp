#include "ranks/slices.h"

namespace lacuna {

Slices::Slices(const std::vector<std::vector<int64_t>>& groups, int num_ranks, int64_t bucket_size) {
  for (const std::vector<int64_t>& chunks : groups) {
    first_buckets_.push_back(buckets_.size());
    const size_t end = chunks.size() - 1;
    for (size_t first = 0; first < end;) {
      size_t last = first + 1;
      while (last < end && chunks[last] - chunks[first] < bucket_size) ++last;
      const int64_t begin = chunks[first], length = chunks[last] - begin;
      Bucket bucket = {{begin}, {}};
      size_t border = first;
      for (int rank = 1; rank <= num_ranks; ++rank) {
        const int64_t wanted = begin + length * rank / num_ranks;
        const size_t before = border;
        while (border < last && chunks[border + 1] - wanted <= wanted - chunks[border]) ++border;  // the nearest border
        bucket.borders.push_back(chunks[border]);
        bucket.num_chunks.push_back(static_cast<int64_t>(border - before));
      }
      buckets_.push_back(std::move(bucket));
      first = last;
    }
  }
  first_buckets_.push_back(buckets_.size());
}

}  // namespace lacuna
