#pragma once

#include "train/flat_parameters.h"
#include "train/shard.h"

namespace lacuna {

/// Adds up the gradients of all ranks: each rank sends every other one the elements that it owns, and that one adds them in the order of
/// ranks, as autograd adds the gradients of batches: so n ranks with a batch each get the bits of one process with n batches.
class GradientExchange {
 public:
  GradientExchange(const FlatParameters& parameters, const Shard& shard);

  /// Takes this rank's gradients, and returns once the sums of its own elements are there. Collective.
  void sum();
  /// The parts of the parameters in one of this rank's own parts, with the sums of their gradients, placed from its begin on.
  PlacedGradients sums(const Shard::Part& part) const { return parameters_.placed(gradients_, part.slice.begin, part.slice.end); }

 private:
  void add(const Shard::Part& part) const;

  const FlatParameters& parameters_;
  const Shard& shard_;
  Tensor gradients_;  ///< like the parameters: of this rank, and in its own parts then of all
  Tensor received_;   ///< [ranks - 1, own elements]: the gradients of the others, in the order of ranks
};

}  // namespace lacuna
