#pragma once

#include "attention/types/entmax15.h"
#include "attention/types/softmax.h"
#include "attention/types/sparsemax.h"
#include "config/config_node.h"

/// alpha-entmax: softmax at alpha = 1, sparsemax at 2, sparser in between the larger alpha is.
///
///   p_j = max((alpha - 1) z_j - tau, 0)^(1 / (alpha - 1))      with  sum p = 1
///
/// Peters, Niculae & Martins 2019, arXiv:1905.05702; the gradient for alpha: Correia, Niculae & Martins 2019, arXiv:1909.00015. The norm of
/// order 1 / (alpha - 1) of max((alpha - 1) z - tau, 0) is convex and decreasing in tau, so Newton's steps towards norm 1 are monotone from
/// the left; no sort and no bisection.
namespace lacuna::types::entmax {

inline constexpr Info kInfo = {.paper = "arXiv:1905.05702", .rows_sum_to_one = true, .sparse = true};

struct Options {
  double alpha = 1.5;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("alpha", self.alpha, between(1, 2), "1 = softmax, 1.5 = entmax15, 2 = sparsemax; 1 exactly, or 1.01 to 2");
  }

#if LACUNA_HOST
  void check(const ConfigNode& node) const {
    if (alpha > 1 && alpha < 1.01) node.find("alpha")->fail("expected 1 exactly, or 1.01 to 2: in between, fp32 does not carry the map");
  }
#endif
};

struct RowMap {
  Options options;

  LACUNA_HD bool is_sparse() const { return options.alpha > 1; }

  /// scores -> weights, in place. A number of the row, if there is one, is its alpha in place of the option.
  template <Row R>
  LACUNA_HD void forward(R scores, const RowContext<typename R::scalar>& context) const {
    using S = typename R::scalar;
    if (context.has_numbers()) return forward_any(scores, context.number(0));
    if (options.alpha == 1) return softmax::RowMap{}.forward(scores);
    if (options.alpha == 1.5) return entmax15::RowMap{}.forward(scores);
    if (options.alpha == 2) return sparsemax::RowMap{}.forward(scores);
    forward_any(scores, static_cast<S>(options.alpha));
  }

  /// d loss / d weights -> d loss / d scores, in place; adds d loss / d alpha.
  template <Row R>
  LACUNA_HD void backward(R weights, R gradient, const RowContext<typename R::scalar>& context) const {
    using S = typename R::scalar;
    if (context.has_numbers()) context.add_gradient(0, alpha_gradient(weights, gradient, context.number(0)));
    const S alpha = context.has_numbers() ? context.number(0) : static_cast<S>(options.alpha);
    center_on(weights, gradient, [=](auto p) { return row::positive_power(p, 2 - alpha); });
  }

 private:
  template <Row R>
  LACUNA_HD void forward_any(R scores, typename R::scalar alpha) const {
    using row::relu, row::positive_power;
    using S = typename R::scalar;
    const S top = scores.max(), power = 1 / (alpha - 1);
    scores.map([=](auto z) { return (z - top) * (alpha - 1); });
    const R candidates = above(scores, S(-1));  // tau >= -1: no other key can have weight
    S tau = -1, before, mass, slope;
    do {
      before = tau;
      candidates.sums(
          [=](auto z, auto& p, auto& derivative) {
            const auto distance = relu(z - before);
            derivative = positive_power(distance, power - 1);
            p = derivative * distance;
          },
          mass, slope);
      tau += (mass - positive_power(mass, 2 - alpha)) / slope;
    } while (tau > before && mass - 1 > R::tolerance);
    scores.map([=](auto z) { return positive_power(relu(z - tau), power); });
    const S scale = 1 / scores.sum([](auto p) { return p; });
    scores.map([=](auto p) { return p * scale; });
  }

  /// sum_j g_j [(p_j - s_j) / (alpha - 1)² - (p_j ln p_j - s_j sum_i p_i ln p_i) / (alpha - 1)],  s_j = p_j^(2 - alpha) / sum_i p_i^(2 -
  /// alpha).
  template <Row R>
  LACUNA_HD typename R::scalar alpha_gradient(R weights, R gradient, typename R::scalar alpha) const {
    using row::positive_power, row::x_log_x;
    using S = typename R::scalar;
    S total, entropy;  // entropy: sum_i p_i ln p_i
    weights.sums(
        [=](auto p, auto& s, auto& term) {
          s = positive_power(p, 2 - alpha);
          term = x_log_x(p);
        },
        total, entropy);
    const S first = 1 / ((alpha - 1) * (alpha - 1)), second = 1 / (alpha - 1), scale = 1 / total;
    return weights.sum(gradient, [=](auto p, auto g) {
      const auto s = positive_power(p, 2 - alpha) * scale;
      return g * ((p - s) * first - (x_log_x(p) - s * entropy) * second);
    });
  }
};

#if LACUNA_HOST  // read by the C++ compiler only, never by nvcc
inline std::vector<Example> examples() {
  return {{.scores = {0, -.4, -2}, .weights = {.64, .36, 0}, .options = "{alpha: 1.5}"},
          {.scores = {-2, 0, .5}, .weights = {0, .25, .75}, .options = "{alpha: 2}"},
          {.scores = {0, std::log(3.0)}, .weights = {.25, .75}, .options = "{alpha: 1}"},
          {.scores = {7, 7}, .weights = {.5, .5}, .options = "{alpha: 1.3}"},
          {.scores = {0, -4}, .weights = {1, 0}, .options = "{alpha: 1.25}"}};
}
#endif

}  // namespace lacuna::types::entmax
