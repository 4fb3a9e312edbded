#pragma once

#include <array>
#include <optional>
#include <span>

#include "analysis/weight_gatherer.h"

namespace lacuna {

/// The name of this measure, and why a model may lack it.
inline constexpr char kMaskEffect[] = "calibration", kNoMaskEffect[] = "no layer is calibrated";

/// Sums that measure how far calibration moves attention at one place: weights a and mask m of each row, and the calibrated
/// a ⊙ exp(1 - m), each divided by its sum. Rows that are null before calibration have no such distribution and are left out.
struct MaskEffect {
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

  /// original and mask [keys], NaN where a key is not visible.
  void add_row(std::span<const float> original, std::span<const float> row_mask);
  void add(const MaskEffect& other);
};

/// The sums of one sentence in a call of calibrated attention.
MaskEffect mask_effect_of(const CallWeights& call, int64_t sentence);

}  // namespace lacuna
