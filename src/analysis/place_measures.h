#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "analysis/row_measures.h"
#include "analysis/weight_gatherer.h"

namespace lacuna {

/// Sums over the rows of one head. A row that sees no key at all is no row.
struct HeadSums {
  int64_t rows = 0, nulls = 0;     ///< queries, and those whose weights are all 0
  int64_t weights = 0, zeros = 0;  ///< visible keys, and those of weight exactly 0
  double entropy = 0;              ///< of the rows that are not null

  void add(const RowMeasures& row);
  void add(const HeadSums& other);
  double sparsity() const { return static_cast<double>(zeros) / static_cast<double>(weights); }
  double null_rate() const { return static_cast<double>(nulls) / static_cast<double>(rows); }
  double support() const { return static_cast<double>(weights - zeros) / static_cast<double>(rows); }
  /// None if every row is null.
  std::optional<double> mean_entropy() const;
};

/// Sums over one place: a layer at a site.
struct PlaceSums {
  std::vector<HeadSums> heads;                                ///< [H]
  std::array<double, std::size(kTemperatures)> divergence{};  ///< by temperature; of rows that are not rectified the first only
  int64_t queries = 0;                                        ///< queries at which heads were compared

  void add(const PlaceSums& other);
  HeadSums pooled() const;
};

/// The measures to take of a call.
struct PlaceChoice {
  bool divergence = true;
  bool is_rectified = false;  ///< rows need not sum to one: heads are compared by softmax(T * row), T each of kTemperatures
};

/// Measures of one sentence in a call. Rows and heads in order: the same bits whatever the number of threads.
PlaceSums measure_sentence(const CallWeights& call, int64_t sentence, const PlaceChoice& choice);

/// The measures of each sentence in a call, computed in parallel.
std::vector<PlaceSums> measure_sentences(const CallWeights& call, const PlaceChoice& choice);

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
