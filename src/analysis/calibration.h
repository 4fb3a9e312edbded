#pragma once

#include <array>
#include <optional>
#include <span>

#include "analysis/weight_gatherer.h"

namespace lacuna {

/// How far calibration moves attention at one place: rows a, masks m, and the calibrated a ⊙ exp(1 - m), each divided by its sum. Rows that
/// are null before calibration have no such distribution and are left out.
struct CalibrationSums {
  static constexpr size_t kBins = 10;
  static constexpr double kBinWidth = .5;  ///< nats; the last bin holds all above too

  struct Bin {
    int64_t rows = 0;
    double divergence = 0;
  };
  int64_t rows = 0;
  double divergence = 0;        ///< Jensen-Shannon, calibrated against original
  double entropy_change = 0;    ///< entropy(calibrated) - entropy(original): + is more dispersed
  double mask = 0;              ///< sum over rows of the mean mask of a row
  std::array<Bin, kBins> bins;  ///< divergence by the original's entropy

  /// original and masks [keys], NaN where a key is not visible.
  void add_row(std::span<const float> original, std::span<const float> masks);
  void add(const CalibrationSums& other);
};

/// The sums of one sentence in a call of calibrated attention.
CalibrationSums calibration_of(const CallWeights& call, int64_t sentence);

/// Rank correlations (Kendall's τ-b) summed over target tokens.
struct RankCorrelation {
  double sum = 0;
  int64_t rows = 0;       ///< rows that have a correlation
  int64_t undefined = 0;  ///< rows of which one side is constant
  bool is_empty() const { return rows + undefined == 0; }
  void add(std::optional<double> tau);
  std::optional<double> mean() const;
};

}  // namespace lacuna
