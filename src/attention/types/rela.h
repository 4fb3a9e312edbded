#pragma once

#include "attention/rows/row.h"
#include "config/config_node.h"

/// Rectified linear attention: no normalization over the keys, so a head may attend to nothing (a null row, whose
/// context is 0).
///
///   p_j = max(z_j, 0)
///
/// Zhang, Titov & Sennrich 2021, arXiv:2104.07012, eq. 3; the other activations are its ablations. What keeps training
/// stable is the norm over the concatenated heads (norms/gated_rms.h, norms/rms.h).
namespace lacuna::types::rela {

inline constexpr Info kInfo = {.paper = "arXiv:2104.07012", .sparse = true, .default_norm = "gated_rms"};

enum class Activation { kRelu, kGelu, kLeakyRelu, kIdentity };

struct Options {
  Activation activation = Activation::kRelu;
  double slope = 0.01;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("activation", self.activation,
          choices<Activation>({{"relu", Activation::kRelu},
                               {"gelu", Activation::kGelu},
                               {"leaky_relu", Activation::kLeakyRelu},
                               {"identity", Activation::kIdentity}}),
          "what makes weights of scores");
    visit("slope", self.slope, between(0, 1), "leaky_relu only: factor of negative scores");
  }

#if LACUNA_HOST
  void check(const ConfigNode& node) const {
    if (activation == Activation::kLeakyRelu || slope == Options().slope) return;
    node.find("slope")->fail("has a meaning with `activation: leaky_relu` only");
  }
  /// Removes from the written options those that have no effect.
  void shorten(ConfigNode& written) const {
    if (activation != Activation::kLeakyRelu) written.erase("slope");
  }
#endif
};

struct RowMap {
  static constexpr bool rows_together = true;
  Options options;

  LACUNA_HD bool is_sparse() const { return options.activation == Activation::kRelu; }
  /// The others see the sign in the weights. Such rows are never worked on together.
  LACUNA_HD bool needs_scores() const { return options.activation == Activation::kGelu; }

  /// Turns scores into weights, in place. No shift: the scores' zero has a meaning.
  template <Row R>
  LACUNA_HD void forward(R scores) const {
    using row::relu, row::normal_cdf;
    using S = typename R::scalar;
    const S slope = static_cast<S>(options.slope);
    switch (options.activation) {
      case Activation::kRelu:
        return scores.map([](auto z) { return relu(z); });
      case Activation::kGelu:
        if constexpr (SingleRow<R>) scores.map([](auto z) { return z * normal_cdf(z); });
        return;
      case Activation::kLeakyRelu:
        return scores.map([=](auto z) { return relu(z) - slope * relu(-z); });
      case Activation::kIdentity:
        return;
    }
  }

  /// Turns d loss / d weights into d loss / d scores, in place: times the activation's derivative.
  template <Row R>
  LACUNA_HD void backward(R scores, R weights, R gradient, const RowContext<typename R::scalar>& /*context*/) const {
    using row::is_positive, row::normal_cdf, row::normal_density;
    using S = typename R::scalar;
    const S slope = static_cast<S>(options.slope);
    switch (options.activation) {
      case Activation::kRelu:
        return gradient.map(weights, [](auto g, auto p) { return g * is_positive(p); });
      case Activation::kGelu:
        if constexpr (SingleRow<R>) gradient.map(scores, [](auto g, auto z) { return g * (normal_cdf(z) + z * normal_density(z)); });
        return;
      case Activation::kLeakyRelu:
        return gradient.map(weights, [=](auto g, auto p) { return g * (slope + is_positive(p) * (1 - slope)); });
      case Activation::kIdentity:
        return;
    }
  }
};

#if LACUNA_HOST  // read by the C++ compiler only, never by nvcc
inline std::vector<Example> examples() {
  return {{.scores = {-2, 0, .5}, .weights = {0, 0, .5}},
          {.scores = {-2, -1}, .weights = {0, 0}},
          {.scores = {-2, 3}, .weights = {-.5, 3}, .options = "{activation: leaky_relu, slope: 0.25}"},
          {.scores = {-2, 3}, .weights = {-2, 3}, .options = "{activation: identity}"},
          {.scores = {-1, 0, 1}, .weights = {-.15865525393146, 0, .84134474606854}, .options = "{activation: gelu}"}};
}
#endif

}  // namespace lacuna::types::rela
