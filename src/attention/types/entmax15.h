#pragma once

#include "attention/rows/row.h"

/// 1.5-entmax: between softmax and sparsemax, sparse and smooth.
///
///   p = argmax p.z + H(p)  over the simplex, H Tsallis's entropy of order 1.5      so      p_j = max(z_j / 2 - tau, 0)²  with  sum p = 1
///
/// Peters, Niculae & Martins 2019, arXiv:1905.05702. The 2-norm of max(z / 2 - tau, 0) is convex and decreasing in tau,
/// so Newton's steps towards norm 1 are monotone from the left (and a single one where all scores are equal); no sort.
namespace lacuna::types::entmax15 {

inline constexpr Info kInfo = {.paper = "arXiv:1905.05702", .rows_sum_to_one = true, .sparse = true};

struct Options {};

struct RowMap {
  static constexpr bool keeps_number = true, one_row_per_lane = true;

  /// Turns scores into weights, in place.
  template <Row R>
  LACUNA_HD void forward(R scores, const RowContext<typename R::scalar>& context) const {
    using S = typename R::scalar;
    const S top = scores.max();
    scores.map([=](auto z) { return (z - top) * S(0.5); });
    const S tau = context.kept_or([=] { return threshold(scores); });
    // With many small weights, the last digit of tau is much of their sum: one more step removes their common excess.
    S mass, length;
    sum_above(scores, tau, mass, length);
    const S excess = (mass - 1) / (length * 2);
    scores.map([=](auto z) {
      const auto distance = row::relu(z - tau - excess);
      return distance * distance;
    });
  }

  /// Turns d loss / d weights into d loss / d scores, in place.
  template <Row R>
  LACUNA_HD void backward(R weights, R gradient) const {
    center_on(weights, gradient, [](auto p) { return row::root(p); });
  }

 private:
  /// Sums the squares of the scores above tau, less tau, and the scores themselves, less tau.
  template <Row R>
  LACUNA_HD static void sum_above(R scores, typename R::scalar tau, typename R::scalar& mass, typename R::scalar& length) {
    scores.sums(
        [=](auto z, auto& square, auto& distance) {
          distance = row::relu(z - tau);
          square = distance * distance;
        },
        mass, length);
  }

  template <Row R>
  LACUNA_HD static typename R::scalar threshold(R candidates) {
    using S = typename R::scalar;
    return row::search(S(-1), [&](S before, S& tau) {
      candidates = above(candidates, before);  // no other key can have weight
      S mass, length;
      sum_above(candidates, before, mass, length);
      tau = before + (mass - row::root(mass)) / length;
      return tau > before && mass - 1 > R::tolerance;
    });
  }
};

#if LACUNA_HOST  // read by the C++ compiler only, never by nvcc
inline std::vector<Example> examples() {
  return {{.scores = {0, 0, 0, 0}, .weights = {.25, .25, .25, .25}},
          {.scores = {0, -2, -3}, .weights = {1, 0, 0}},
          // tau = -0.8: 0.8² and 0.6²
          {.scores = {0, -.4, -2}, .weights = {.64, .36, 0}}};
}
#endif

}  // namespace lacuna::types::entmax15
