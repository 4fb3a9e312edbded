#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Measures of single rows of attention weights; NaN marks a key that the query does not see, and logarithms are natural.
namespace lacuna {

/// The contribution of one row to its head's measures.
struct RowMeasures {
  int64_t visible = 0, zeros = 0;  ///< keys, and those of weight exactly 0
  double entropy = 0;              ///< -Σ p ln p, p the weights' magnitudes divided by their sum; 0 for a null row
  bool is_null() const { return zeros == visible; }
};
RowMeasures measure_row(std::span<const float> weights);

/// -Σ p ln p in nats, p the weights' magnitudes divided by their sum; 0 if all are 0.
double entropy_of(std::span<const float> weights);
double entropy_of(std::span<const double> weights);

/// The temperatures at which heads of rectified rows are compared.
inline constexpr double kTemperatures[] = {1, .5, .25, .1};

/// Generalised Jensen-Shannon divergence between the heads of a layer at one query: H(mean_h p_h) - mean_h H(p_h).
class HeadDivergence {
 public:
  /// heads [H], a row each over the same keys. p_h is the row divided by its sum or, with a temperature T, softmax(T * row) over the
  /// visible keys; a null row is the one-hot on one more key that no other row can see.
  double operator()(std::span<const std::span<const float>> heads, std::optional<double> temperature);

 private:
  double add_scaled(std::span<const float> row, double share);
  double add_softmax(std::span<const float> row, double temperature, double share);

  std::vector<double> mean_;  // [keys + 1], the last one the null rows' own
};

/// Jensen-Shannon divergence of two rows of weights, each divided by its sum, neither null.
double js_divergence(std::span<const double> p, std::span<const double> q);

/// Kendall's rank correlation τ-b (1945) of two rows, over the positions at which neither is NaN: (concordant - discordant pairs) /
/// sqrt(pairs that x does not tie * pairs that y does not tie); none if all values of one side are equal.
std::optional<double> kendall_tau_b(std::span<const double> x, std::span<const double> y);

}  // namespace lacuna
