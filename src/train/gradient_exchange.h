#pragma once

#include <vector>

#include "train/flat_parameters.h"
#include "train/shard.h"

namespace lacuna {

/// Adds up the gradients of all ranks: each rank sends every other one the elements that it owns, and that one adds them in the order of
/// ranks, as autograd adds the gradients of batches: so n ranks with a batch each get the bits of one process with n batches.
///
/// Buckets leave in one order, the same at all ranks, from the last of a group of parameters to its first: about as the backward pass makes
/// gradients. Each leaves as soon as its gradients and those of the buckets before it are final, while the last backward pass of the update
/// goes on. Memory may end in that pass when some have left: the batch is then done again in parts, whose gradients count for the other
/// parameters alone.
class GradientExchange {
 public:
  /// On the wire a gradient is of the type `wire`. The references must outlive the exchange.
  GradientExchange(const FlatParameters& parameters, const Shard& shard, at::ScalarType wire);
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  /// Says whether gradients leave while the backward pass goes on, as they do unless this is called, or after it.
  void set_overlap(bool overlaps) { overlaps_ = overlaps; }
  /// Says whether the backward pass that follows is the update's last one, whose gradients are final.
  void expect_last(bool is_last);
  /// Returns true if gradients of the present update are taken: they must not be computed anew.
  bool has_begun() const { return num_taken_ > 0; }
  /// Takes the gradients that are left, and returns once the sums of this rank's own elements are there. Collective.
  void finish();
  /// The parts of the parameters in one of this rank's own parts, with the sums of their gradients, placed from its begin on.
  PlacedGradients sums(const Shard::Part& part) const { return parameters_.placed(gradients_, part.slice.begin, part.slice.end); }

 private:
  class Hook;

  void accumulated(size_t parameter);
  void take(size_t parameter);
  void start(size_t bucket);
  void add(const Shard::Part& part) const;

  const FlatParameters& parameters_;
  const Shard& shard_;
  at::ScalarType wire_;
  Tensor gradients_;                             ///< like the parameters: of this rank, and in its own parts then of all
  Tensor received_;                              ///< [ranks - 1, own elements]: the gradients of the others, in the order of ranks
  std::vector<std::vector<size_t>> buckets_of_;  ///< by parameter
  std::vector<size_t> num_parameters_;           ///< by bucket
  std::vector<size_t> order_;                    ///< of the buckets

  bool overlaps_ = true;
  bool is_last_ = false;  ///< gradients that come are final
  size_t num_taken_ = 0;
  std::vector<char> is_taken_;       ///< by parameter
  std::vector<size_t> missing_;      ///< by bucket: parameters that are not taken
  Transfers transfers_;              ///< of the buckets that have left, in their order
  std::vector<Tensor> on_the_wire_;  ///< copies of another type, until they are sent
};

}  // namespace lacuna
