#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "ranks/group.h"
#include "ranks/slices.h"
#include "train/flat_parameters.h"

namespace lacuna {

/// Returns the least number of elements of a bucket that so many ranks exchange, but for the last one.
int64_t least_bucket(int num_ranks);

/// What each rank owns of buffers laid out like a model's parameters: it alone updates these elements, and keeps the optimizer's state of
/// them (ZeRO-1: Rajbhandari et al. 2020, arXiv:1910.02054). Functions that send are collective.
class Shard {
 public:
  /// A slice of a bucket that this rank owns, not empty, and where it begins in a buffer of nothing but such slices, an own buffer.
  struct Part {
    size_t bucket;
    Slice slice;
    int64_t own_begin;
    int64_t own_end() const { return own_begin + slice.size(); }
  };

  /// `group` must outlive the shard.
  Shard(const FlatParameters& parameters, Group& group);

  Group& group() const { return group_; }
  const Slices& slices() const { return slices_; }
  /// The parts of a group of parameters, in the order of the buffer.
  const std::vector<Part>& parts(size_t parameter_group) const { return parts_[parameter_group]; }
  /// Returns this rank's part of a bucket; null if it owns nothing of it.
  const Part* part_of(size_t bucket) const;
  /// The number of elements that this rank owns.
  int64_t own_size() const { return own_size_; }
  /// Returns an own buffer with this rank's elements of a whole one.
  Tensor own_of(const Tensor& whole) const;
  void copy_own(const Tensor& own, const Tensor& whole) const;

  /// Sends this rank's elements of a group of parameters to all others, and receives theirs. `make`, if given, is called for each part
  /// before it leaves, and computes its elements.
  void share(const Tensor& whole, size_t parameter_group, const std::function<void(const Part&)>& make = {}) const;
  void share(const Tensor& whole) const;
  /// Returns the whole buffer at rank 0, made of all ranks' own buffers; elsewhere an undefined tensor.
  Tensor gather_at_first(const Tensor& own) const;
  /// Gives every rank the elements of rank 0.
  void spread(const Tensor& whole) const;

  /// What a message is for. With the number of its bucket it makes a tag.
  enum class Use { kGradients, kShare, kGather, kSpread };
  int tag(Use use, size_t bucket) const;
  Tensor slice_of(const Tensor& whole, size_t bucket, int rank) const;

 private:
  Group& group_;
  Slices slices_;
  std::vector<std::vector<Part>> parts_;
  int64_t own_size_ = 0;
};

using Transfers = std::vector<std::unique_ptr<Transfer>>;
void wait_for(const Transfers& transfers);

}  // namespace lacuna
