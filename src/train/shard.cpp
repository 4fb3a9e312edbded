#include "train/shard.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace lacuna {
namespace {

constexpr int64_t kBucketSize = 1 << 20;     ///< elements: small enough to leave early, large enough not to cost by its number
constexpr int64_t kLeastSlice = 4 * kChunk;  ///< elements: with many ranks buckets grow, so that chunks divide them about evenly

Slices slices_of(const FlatParameters& parameters, int num_ranks) {
  std::vector<std::vector<int64_t>> chunks;
  for (const FlatParameters::Range& group : parameters.groups()) chunks.push_back(parameters.chunks(group));
  return {chunks, num_ranks, least_bucket(num_ranks)};
}

}  // namespace

int64_t least_bucket(int num_ranks) {
  return std::max(kBucketSize, num_ranks * kLeastSlice);
}

void wait_for(const Transfers& transfers) {
  for (const auto& transfer : transfers) transfer->wait();
}

Shard::Shard(const FlatParameters& parameters, Group& group)
    : group_(group), slices_(slices_of(parameters, group.size())), parts_(parameters.groups().size()) {
  for (size_t g = 0; g < parts_.size(); ++g)
    for (size_t bucket = slices_.first_bucket(g); bucket < slices_.first_bucket(g + 1); ++bucket) {
      const Slice slice = slices_.slice(bucket, group.rank());
      if (!slice.is_empty()) parts_[g].push_back({bucket, slice, own_size_});
      own_size_ += slice.size();
    }
}

int Shard::tag(Use use, size_t bucket) const {
  return static_cast<int>(static_cast<size_t>(use) * slices_.num_buckets() + bucket);
}

Tensor Shard::slice_of(const Tensor& whole, size_t bucket, int rank) const {
  const Slice slice = slices_.slice(bucket, rank);
  return whole.slice(0, slice.begin, slice.end);
}

Tensor Shard::own_of(const Tensor& whole) const {
  Tensor own = at::empty({own_size_}, whole.options());
  for (const auto& parts : parts_)
    for (const Part& part : parts) own.slice(0, part.own_begin, part.own_end()).copy_(whole.slice(0, part.slice.begin, part.slice.end));
  return own;
}

void Shard::copy_own(const Tensor& own, const Tensor& whole) const {
  for (const auto& parts : parts_)
    for (const Part& part : parts) whole.slice(0, part.slice.begin, part.slice.end).copy_(own.slice(0, part.own_begin, part.own_end()));
}

const Shard::Part* Shard::part_of(size_t bucket) const {
  for (const auto& parts : parts_) {
    const auto part = std::ranges::find(parts, bucket, &Part::bucket);
    if (part != parts.end()) return &*part;
  }
  return nullptr;
}

void Shard::share(const Tensor& whole, size_t parameter_group, const std::function<void(const Part&)>& make) const {
  Transfers transfers;
  for (size_t bucket = slices_.first_bucket(parameter_group); bucket < slices_.first_bucket(parameter_group + 1); ++bucket) {
    const Part* const own = part_of(bucket);
    if (own != nullptr && make) make(*own);
    Messages sent, received;
    for (int step = 1; step < group_.size(); ++step) {  // each rank begins with another one
      const int other = (group_.rank() + step) % group_.size();
      if (own != nullptr) sent.push_back({slice_of(whole, bucket, group_.rank()), other});
      if (!slices_.slice(bucket, other).is_empty()) received.push_back({slice_of(whole, bucket, other), other});
    }
    transfers.push_back(group_.exchange(sent, received, tag(Use::kShare, bucket)));
  }
  wait_for(transfers);
}

void Shard::share(const Tensor& whole) const {
  for (size_t g = 0; g < parts_.size(); ++g) share(whole, g);
}

Tensor Shard::gather_at_first(const Tensor& own) const {
  Tensor whole;
  if (group_.is_first()) {
    whole = at::zeros({slices_.bucket(slices_.num_buckets() - 1).end}, own.options());
    copy_own(own, whole);
  }
  Transfers transfers;
  for (size_t bucket = 0; bucket < slices_.num_buckets(); ++bucket) {
    Messages sent, received;
    if (const Part* const part = part_of(bucket); part != nullptr && !group_.is_first())
      sent.push_back({own.slice(0, part->own_begin, part->own_end()), 0});
    for (int other = 1; group_.is_first() && other < group_.size(); ++other)
      if (!slices_.slice(bucket, other).is_empty()) received.push_back({slice_of(whole, bucket, other), other});
    transfers.push_back(group_.exchange(sent, received, tag(Use::kGather, bucket)));
  }
  wait_for(transfers);
  return whole;
}

/// First each rank gets the elements it owns, and then all send theirs to all, so that no rank sends the whole buffer to each other.
void Shard::spread(const Tensor& whole) const {
  Transfers transfers;
  for (size_t bucket = 0; bucket < slices_.num_buckets(); ++bucket) {
    Messages sent, received;
    if (!group_.is_first() && part_of(bucket) != nullptr) received.push_back({slice_of(whole, bucket, group_.rank()), 0});
    for (int other = 1; group_.is_first() && other < group_.size(); ++other)
      if (!slices_.slice(bucket, other).is_empty()) sent.push_back({slice_of(whole, bucket, other), other});
    transfers.push_back(group_.exchange(sent, received, tag(Use::kSpread, bucket)));
  }
  wait_for(transfers);
  share(whole);
}

}  // namespace lacuna
