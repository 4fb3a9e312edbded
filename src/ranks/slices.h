#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lacuna {

/// The elements `begin` to `end` of a flat buffer.
struct Slice {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool is_empty() const { return begin == end; }
  bool operator==(const Slice&) const = default;
};

/// How ranks share a flat buffer, which consists of groups, and these of chunks. A group is cut into buckets, which travel one by one, and
/// each bucket into one slice for every rank, its owner. All cuts lie between chunks; slices of a bucket differ by about a chunk.
class Slices {
 public:
  /// Takes for each group the first elements of its chunks, ascending, and at last its end. A bucket has at least `bucket_size` elements,
  /// but for the last one of a group.
  Slices(const std::vector<std::vector<int64_t>>& groups, int num_ranks, int64_t bucket_size);

  size_t num_buckets() const { return buckets_.size(); }
  /// Returns the number of a group's first bucket; of the number of groups, the number of buckets.
  size_t first_bucket(size_t group) const { return first_buckets_[group]; }
  Slice bucket(size_t bucket) const { return {buckets_[bucket].borders.front(), buckets_[bucket].borders.back()}; }
  /// Returns the slice of a bucket that a rank owns, which may be empty.
  Slice slice(size_t bucket, int rank) const {
    const size_t r = static_cast<size_t>(rank);
    return {buckets_[bucket].borders[r], buckets_[bucket].borders[r + 1]};
  }
  int64_t num_chunks(size_t bucket, int rank) const { return buckets_[bucket].num_chunks[static_cast<size_t>(rank)]; }

 private:
  struct Bucket {
    std::vector<int64_t> borders;     // of the slices: one more than ranks
    std::vector<int64_t> num_chunks;  // of the slices
  };

  std::vector<Bucket> buckets_;
  std::vector<size_t> first_buckets_;
};

}  // namespace lacuna
