#pragma once

#include "attention/rows/row.h"

/// Sparsemax: the point of the probability simplex nearest to the scores.
///
///   p = argmin ||p - z||²  with p >= 0, sum p = 1      so      p_j = max(z_j - tau, 0)
///
/// Martins & Astudillo 2016, arXiv:1602.02068, eq. 2 and prop. 1. tau by Newton's method from the left: the mass is
/// convex and decreasing in tau, so the steps are monotone and end exactly; no sort. Backward: Peters et al. 2019,
/// arXiv:1905.05702.
namespace lacuna::types::sparsemax {

inline constexpr Info kInfo = {.paper = "arXiv:1602.02068", .rows_sum_to_one = true, .sparse = true};

struct Options {};

struct RowMap {
  static constexpr bool keeps_number = true, one_row_per_lane = true;

  /// Turns scores into weights, in place.
  template <Row R>
  LACUNA_HD void forward(R scores, const RowContext<typename R::scalar>& context) const {
    const auto top = scores.max();
    scores.map([=](auto z) { return z - top; });  // huge scores lose nothing
    const auto tau = context.kept_or([=] { return threshold(scores); });
    // With many small weights, the last digit of tau is much of their sum: their common excess is subtracted from each.
    typename R::scalar mass, support;
    sum_above(scores, tau, mass, support);
    const auto excess = (mass - 1) / support;
    scores.map([=](auto z) { return row::relu(z - tau - excess); });
  }

  /// Turns d loss / d weights into d loss / d scores, in place: the gradient on the support, centred there.
  template <Row R>
  LACUNA_HD void backward(R weights, R gradient) const {
    center_on(weights, gradient, [](auto p) { return row::is_positive(p); });
  }

 private:
  /// Sums the scores above tau, less tau, and counts them.
  template <Row R>
  LACUNA_HD static void sum_above(R scores, typename R::scalar tau, typename R::scalar& mass, typename R::scalar& support) {
    scores.sums(
        [=](auto z, auto& p, auto& kept) {
          p = row::relu(z - tau);
          kept = row::is_positive(p);
        },
        mass, support);
  }

  template <Row R>
  LACUNA_HD static typename R::scalar threshold(R candidates) {
    using S = typename R::scalar;
    return row::search(S(-1), [&](S before, S& tau) {
      candidates = above(candidates, before);  // no other key can have weight
      S mass, support;
      sum_above(candidates, before, mass, support);
      tau = before + (mass - 1) / support;
      return tau > before && mass - 1 > R::tolerance;
    });
  }
};

#if LACUNA_HOST  // read by the C++ compiler only, never by nvcc
inline std::vector<Example> examples() {
  return {{.scores = {-2, 0, .5}, .weights = {0, .25, .75}}, {.scores = {3, 1, 3}, .weights = {.5, 0, .5}}};
}
#endif

}  // namespace lacuna::types::sparsemax
