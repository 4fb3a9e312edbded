#pragma once

#include "attention/rows/row.h"

/// Softmax: the attention of Vaswani et al. 2017, arXiv:1706.03762, eq. 1.
///
///   p_j = exp(z_j) / sum_i exp(z_i)
namespace lacuna::types::softmax {

inline constexpr Info kInfo = {.paper = "arXiv:1706.03762", .rows_sum_to_one = true};

struct Options {};

struct RowMap {
  static constexpr bool keeps_number = true;  // 1 / sum_i exp(z_i - max z)
  static constexpr bool one_row_per_lane = true;

  /// Turns scores into weights, in place.
  template <Row R>
  LACUNA_HD void forward(R scores, const RowContext<typename R::scalar>& context) const {
    using row::exponential;
    const auto top = scores.max();  // huge scores lose nothing
    const bool is_scale_known = context.has_kept_number();
    const auto scale = context.kept_or([=] { return 1 / scores.map_and_sum([=](auto z) { return exponential(z - top); }); });
    is_scale_known ? scores.map([=](auto z) { return exponential(z - top) * scale; }) : scores.map([=](auto p) { return p * scale; });
  }

  /// Turns d loss / d weights into d loss / d scores, in place: p (g - p.g).
  template <Row R>
  LACUNA_HD void backward(R weights, R gradient) const {
    const auto mean = weights.sum(gradient, [](auto p, auto g) { return p * g; });
    gradient.map(weights, [=](auto g, auto p) { return p * (g - mean); });
  }
};

#if LACUNA_HOST  // read by the C++ compiler only, never by nvcc
inline std::vector<Example> examples() {
  return {{.scores = {0, 0, 0, 0}, .weights = {.25, .25, .25, .25}}, {.scores = {0, std::log(3.0)}, .weights = {.25, .75}}};
}
#endif

}  // namespace lacuna::types::softmax
