#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/batch.h"
#include "train/optimizer.h"
#include "train/trainer.h"

namespace lacuna {

struct SavedUpdate;

/// Repeats the passes of one update over its batches, and says which tensor first has values that are not finite: of the forward pass,
/// from input to loss, or else of the gradients, from the loss to the input. Empty if all are finite. Leaves no gradients.
std::string first_not_finite(const SavedUpdate& update, const LossFunction& loss, uint64_t seed, Optimizer& optimizer);
/// Returns what first_not_finite finds as a line of the log.
std::string diagnosis_of(const SavedUpdate& update, const LossFunction& loss, uint64_t seed, Optimizer& optimizer);

/// The batches of one update and its number, as bad_batch.json of a run folder holds them.
struct SavedUpdate {
  int64_t step = 0;  ///< with the seed, it decides on dropout
  std::vector<BatchPtr> batches;

  /// Writes token ids and text of all sentence pairs.
  void write(const std::filesystem::path& file, const Vocabularies& vocabularies) const;
  /// Throws DataError if the file is not what `write` wrote with such vocabularies.
  static SavedUpdate read(const std::filesystem::path& file, const Vocabularies& vocabularies);
};

}  // namespace lacuna
