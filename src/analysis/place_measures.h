#pragma once

#include <array>
#include <optional>
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

}  // namespace lacuna
