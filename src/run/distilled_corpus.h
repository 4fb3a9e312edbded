#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "parts/job_folder.h"

namespace lacuna {

/// Which translations of a teacher a student learns from.
struct DistillFilter {
  double keep = 0.95;           ///< share of the translations of a fit length: those with the highest scores
  double max_length_ratio = 3;  ///< characters of one side to those of the other, at most
  bool operator==(const DistillFilter&) const = default;
};

/// How many lines were kept, and why others were not.
struct DistilledText {
  int64_t lines = 0, kept = 0;
  int64_t empty = 0, uneven = 0, low_scores = 0;
  std::string text() const;
};

/// Writes the lines of `mono` that are kept, and their translations by the job (its lines are a score, a tab, and a translation), to two
/// files, each whole or not there. Throws DataError if the job's parts are not the translations of these lines.
DistilledText write_distilled(const std::filesystem::path& mono, const JobFolder& job, const DistillFilter& filter,
                              const std::filesystem::path& src, const std::filesystem::path& tgt);

}  // namespace lacuna
