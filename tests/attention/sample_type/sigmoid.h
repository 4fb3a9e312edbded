#pragma once

#include "attention/rows/row.h"

/// A sample type, as a newcomer would write it: each key is weighed on its own.
///
///   p_j = 1 / (1 + exp(-z_j))
namespace lacuna::types::sigmoid {

inline constexpr Info kInfo = {.paper = "none: a sample"};

struct Options {};

struct RowMap {
  /// Turns scores into weights, in place.
  template <Row R>
  LACUNA_HD void forward(R scores) const {
    using row::exponential, row::is_positive, row::relu;
    scores.map([](auto z) {
      const auto small = exponential(-(relu(z) + relu(-z)));  // of -|z|: never too large
      return (is_positive(z) * (1 - small) + small) / (1 + small);
    });
  }

  /// Turns d loss / d weights into d loss / d scores, in place: g p (1 - p).
  template <Row R>
  LACUNA_HD void backward(R weights, R gradient) const {
    gradient.map(weights, [](auto g, auto p) { return g * p * (1 - p); });
  }
};

#if LACUNA_HOST  // read by the C++ compiler only, never by nvcc
inline std::vector<Example> examples() {
  return {{.scores = {0, std::log(3.0)}, .weights = {.5, .75}}};
}
#endif

}  // namespace lacuna::types::sigmoid
