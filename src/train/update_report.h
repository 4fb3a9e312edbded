#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "train/optimizer.h"

namespace lacuna {

/// Sums over the target tokens of a batch, or of a part of one that memory forced apart.
struct BatchSums {
  int64_t batch = 0;  ///< its number in the update
  double loss = 0, nll = 0, penalty = 0;
  int64_t correct = 0, tokens = 0;
  bool has_auxiliary = false;
  std::map<std::string, double> auxiliary = {};  ///< AuxiliarySums::values
  bool operator==(const BatchSums&) const = default;
};

/// What a rank tells all others of its part of an update.
struct UpdateReport {
  std::vector<BatchSums> batches;
  GradientSquares squares;
  bool is_interrupted = false;
  std::string failure;      ///< told_of() (ranks/stage.h)
  double busy_seconds = 0;  ///< time that its batches took
  double hours = 0;         ///< of training, over all starts, by this rank's clock

  /// Returns the report in the layout of the machine.
  std::string bytes() const;
  /// Throws LostRankError if the bytes are no report.
  static UpdateReport of_bytes(const std::string& bytes);
};

}  // namespace lacuna
