#pragma once

#include <vector>

namespace lacuna {

/// Tells by a pair's null rates, one for each layer and head of cross attention, whether its sides belong together. Heads differ: one
/// attends to nothing more often where they don't, another less often, and in the mean of all that is lost. What each is worth is learned
/// without labels, from the same sources beside the targets of other pairs: Fisher's linear discriminant (1936),
///
///   w = (C + 1e-4 I)^-1 (m_shuffled - m_given)
///
/// with the means m of both kinds and C the mean of their covariances.
class NullContrast {
 public:
  /// Rows of null rates, at least two of each kind.
  static NullContrast fit(const std::vector<std::vector<float>>& given, const std::vector<std::vector<float>>& shuffled);

  /// w . (rates - the middle between both means): above 0, the pair is more like a shuffled one.
  double of(const std::vector<float>& null_rates) const;

 private:
  std::vector<double> weights_, middle_;
};

}  // namespace lacuna
