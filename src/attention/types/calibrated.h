#pragma once

#include "attention/rows/row.h"
#include "config/config_node.h"
#if LACUNA_HOST
#include "attention/mask_training.h"
#endif

/// Calibrated attention: a mask model finds the keys that the translation cannot do without, and these get more weight.
///
///   m = sigmoid(u)                 the mask, u the scores of the mask model: queries and keys by its own W_Q and W_K
///   a = base(z)                    the weights of any other type
///   mask pass         m a + (1 - m) mean(a)                   perturbed: weights of 0 where m is 0 say nothing
///   translation pass  a_c = a exp(1 - m), and then
///     fixed           softmax(a + lambda a_c)                 dense and near uniform, as published
///     anneal          gamma a + (1 - gamma) a_c               gamma = exp(-step / anneal_steps)
///     gate            g a + (1 - g) a_c                       g = sigmoid(q W_g + b_g), one for each query and head
///
/// Lu, Zeng, Zhang, Wu & Li 2021, aclanthology.org/2021.acl-long.103, eq. 4 to 10. a_c is not made to sum to one, as published.
///
/// The translation pass trains all but the mask model, to which m is a constant. The mask pass trains the mask model alone; it minimises
///
///   -min(translation loss a token, mask_loss_cap) + mask_penalty |1 - m|
///
/// the smallest perturbation that hurts most. |1 - m| is the 2-norm over a query's n keys divided by sqrt(n), averaged over queries, heads
/// and layers, so that it depends on neither batch nor length.
namespace lacuna::types::calibrated {

inline constexpr Info kInfo = {.paper = "ACL 2021.acl-long.103"};

enum class Combine { kFixed, kAnneal, kGate };

/// What a row of the mask pass gives beside its weights.
enum Result { kDistance, kMean };  ///< |1 - m| / sqrt(n), and the mean of m

struct Options {
  Combine combine = Combine::kGate;
  double lambda = 1;
  int64_t anneal_steps = 100000;
  double mask_penalty = 1;
  double mask_loss_cap = 10;
  int64_t mask_every = 1;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("combine", self.combine, choices<Combine>({{"fixed", Combine::kFixed}, {"anneal", Combine::kAnneal}, {"gate", Combine::kGate}}),
          "how weights and calibrated weights become one: a fixed sum, one that moves with the steps, or a learned gate");
    visit("lambda", self.lambda, at_least(0), "fixed only: factor of the calibrated weights");
    visit("anneal_steps", self.anneal_steps, at_least(1), "anneal only: steps after which the plain weights' share has fallen to 1/e");
    visit("mask_penalty", self.mask_penalty, at_least(0), "pull of the mask towards 1, where nothing is perturbed");
    visit("mask_loss_cap", self.mask_loss_cap, more_than(0), "nats a token: the mask gains nothing by a translation loss beyond");
    visit("mask_every", self.mask_every, at_least(1), "the mask is trained in every so many-th step");
  }

#if LACUNA_HOST
  void check(const ConfigNode& node) const {
    const ConfigNode *given_lambda = node.find("lambda"), *given_steps = node.find("anneal_steps");
    if (given_lambda != nullptr && combine != Combine::kFixed) given_lambda->fail("has a meaning with `combine: fixed` only");
    if (given_steps != nullptr && combine != Combine::kAnneal) given_steps->fail("has a meaning with `combine: anneal` only");
  }
  void check_base(const ConfigNode& node, const Info& base) const {
    if (combine == Combine::kFixed && !base.rows_sum_to_one)
      node.fail(
          "its rows need not sum to one, and may be all zero, which `combine: fixed` would turn into even weights; use combine: anneal or "
          "gate, or a base whose rows sum to one");
  }
  /// Leaves out of the written options what plays no part, so that they can be read again.
  void shorten(ConfigNode& written) const {
    if (combine != Combine::kFixed) written.erase("lambda");
    if (combine != Combine::kAnneal) written.erase("anneal_steps");
  }
  MaskTraining mask_training() const {
    return {.penalty = mask_penalty, .loss_cap = mask_loss_cap, .every = mask_every};
  }
#endif
};

struct RowMap {
  Options options;

  /// The gate before its sigmoid.
  LACUNA_HD int num_numbers() const { return options.combine == Combine::kGate ? 1 : 0; }
  /// A key without weight in the base has none here either (but in the mask pass).
  LACUNA_HD bool is_sparse() const { return options.combine != Combine::kFixed; }

  /// The base's weights -> weights, and scores of the mask -> mask, in place.
  template <Row R>
  LACUNA_HD void forward(R weights, R mask, const RowContext<typename R::scalar>& context) const {
    using row::exponential;
    mask.map([](auto u) { return sigmoid(u); });
    if (context.is_mask_pass) return perturb(weights, mask, context);
    const auto share = share_of(context);
    if (options.combine != Combine::kFixed) return weights.map(mask, [=](auto p, auto m) { return p * factor(m, share); });
    const auto lambda = static_cast<typename R::scalar>(options.lambda);
    weights.map(mask, [=](auto p, auto m) { return p * (1 + lambda * exponential(1 - m)); });
    const auto top = weights.max();
    const auto scale = 1 / weights.map_and_sum([=](auto x) { return exponential(x - top); });
    weights.map([=](auto p) { return p * scale; });
  }

  /// d loss / d weights -> d loss / d (the base's weights), in place; adds what flows to the gate. In the mask pass also d loss / d (scores
  /// of the mask), in `mask_gradient`, which comes as a copy of `gradient`.
  template <Row R>
  LACUNA_HD void backward(R base, R weights, R mask, R gradient, R mask_gradient, const RowContext<typename R::scalar>& context) const {
    using row::exponential;
    using S = typename R::scalar;
    if (context.is_mask_pass) return propagate_perturbed(base, mask, gradient, mask_gradient, context);
    if (options.combine == Combine::kFixed) {
      const S mean = weights.sum(gradient, [](auto p, auto g) { return p * g; }), lambda = static_cast<S>(options.lambda);
      gradient.map(weights, [=](auto g, auto p) { return p * (g - mean); });
      return gradient.map(mask, [=](auto g, auto m) { return g * (1 + lambda * exponential(1 - m)); });
    }
    const S share = share_of(context);
    if (options.combine == Combine::kGate) {
      const R by_weight = mask_gradient;
      by_weight.map(base, [](auto g, auto p) { return g * p; });
      const S of_share = by_weight.sum(mask, [](auto g, auto m) { return g * (1 - exponential(1 - m)); });
      context.add_gradient(0, of_share * share * (1 - share));
    }
    gradient.map(mask, [=](auto g, auto m) { return g * factor(m, share); });
  }

 private:
  /// Exact at both ends, however large the score.
  template <class X>
  LACUNA_HD static X sigmoid(X x) {
    using row::exponential, row::is_positive, row::relu;
    const X small = exponential(-(relu(x) + relu(-x))), positive = is_positive(x);
    return (positive + (1 - positive) * small) / (1 + small);
  }

  /// The plain weights' share: gamma, or the gate.
  template <class S>
  LACUNA_HD S share_of(const RowContext<S>& context) const {
    if (options.combine == Combine::kGate) return sigmoid(context.number(0));
    return static_cast<S>(row::exponential(-static_cast<double>(context.step) / static_cast<double>(options.anneal_steps)));
  }

  /// What combining multiplies a weight with.
  template <class X, class S>
  LACUNA_HD static X factor(X mask, S share) {
    return share + (1 - share) * row::exponential(1 - mask);
  }

  /// |1 - m| / sqrt(n)
  template <Row R>
  LACUNA_HD static typename R::scalar distance(R mask) {
    const auto squares = mask.sum([](auto m) { return (1 - m) * (1 - m); });
    return row::root(squares / static_cast<typename R::scalar>(mask.size()));
  }

  template <Row R>
  LACUNA_HD void perturb(R weights, R mask, const RowContext<typename R::scalar>& context) const {
    const auto n = static_cast<typename R::scalar>(weights.size());
    const auto mean = weights.sum([](auto p) { return p; }) / n;
    weights.map(mask, [=](auto p, auto m) { return m * p + (1 - m) * mean; });
    if (context.results == nullptr) return;
    context.results[kDistance] = distance(mask);
    context.results[kMean] = mask.sum([](auto m) { return m; }) / n;
  }

  template <Row R>
  LACUNA_HD void propagate_perturbed(R base, R mask, R gradient, R mask_gradient, const RowContext<typename R::scalar>& context) const {
    using S = typename R::scalar;
    const S n = static_cast<S>(base.size()), mean = base.sum([](auto p) { return p; }) / n, norm = distance(mask);
    const S pull = context.result_gradients != nullptr && norm > 0 ? context.result_gradients[kDistance] / (n * norm) : S(0);
    mask_gradient.map(base, [=](auto g, auto p) { return g * (p - mean); });
    mask_gradient.map(mask, [=](auto g, auto m) { return (g - pull * (1 - m)) * m * (1 - m); });
    const S spread = gradient.sum(mask, [](auto g, auto m) { return g * (1 - m); }) / n;
    gradient.map(mask, [=](auto g, auto m) { return g * m + spread; });
  }
};

#if LACUNA_HOST  // read by the C++ compiler only, never by nvcc
inline std::vector<Example> examples() {
  const double three = std::log(3.0), e = std::exp(1.0), gamma = std::exp(-2.0),
               far = 1000;  // the mask is .5 at 0, .75 at log 3, 1 far above and 0 far below
  return {
      {.scores = {0, three}, .weights = {.25, .75}, .options = "{combine: gate}", .mask_scores = {far, far}, .numbers = {0}},
      {.scores = {0, three}, .weights = {.25, .75 * (.5 + .5 * e)}, .options = "{}", .mask_scores = {far, -far}, .numbers = {0}},
      {.scores = {0, three}, .weights = {.25 * (.75 + .25 * e), .75}, .options = "{}", .mask_scores = {-far, far}, .numbers = {three}},
      {.scores = {0, three}, .weights = {.25, .75}, .options = "{combine: anneal}", .mask_scores = {0, -far}, .step = 0},
      {.scores = {0, three},
       .weights = {.25 * (gamma + (1 - gamma) * e), .75 * (gamma + (1 - gamma) * std::sqrt(e))},
       .options = "{combine: anneal, anneal_steps: 1000}",
       .mask_scores = {-far, 0},
       .step = 2000},
      {.scores = {7, 7}, .weights = {.5, .5}, .options = "{combine: fixed}", .mask_scores = {2, 2}},
      {.scores = {0, three}, .weights = {1 / (1 + e), e / (1 + e)}, .options = "{combine: fixed}", .mask_scores = {far, far}},
      {.scores = {0, std::log(2.0)},
       .weights = {1 / (1 + e), e / (1 + e)},
       .options = "{combine: fixed, lambda: 2}",
       .mask_scores = {far, far}},
      {.scores = {0, three},
       .weights = {.3125, .5625},
       .options = "{}",
       .mask_scores = {three, -three},
       .numbers = {0},
       .is_mask_pass = true},
      {.scores = {-2, -1}, .weights = {0, 0}, .options = "{base: rela}", .mask_scores = {1, 2}, .numbers = {0}},
      {.scores = {-2, -1}, .weights = {0, 0}, .options = "{base: rela}", .mask_scores = {1, 2}, .numbers = {0}, .is_mask_pass = true},
      {.scores = {-2, 0, .5},
       .weights = {0, .25, .75 * e},
       .options = "{base: sparsemax}",
       .mask_scores = {0, far, -far},
       .numbers = {-far}},
      {.scores = {3}, .weights = {1}, .options = "{base: {type: entmax, alpha: 1.3}}", .mask_scores = {far}, .numbers = {1}},
  };
}
#endif

}  // namespace lacuna::types::calibrated
