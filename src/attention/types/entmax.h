#pragma once

#include "attention/types/entmax15.h"
#include "attention/types/softmax.h"
#include "attention/types/sparsemax.h"
#include "config/config_node.h"
#if LACUNA_HOST
#include <algorithm>

#include "attention/rows/row_numbers.h"
#endif

/// alpha-entmax: softmax at alpha = 1, sparsemax at 2, sparser in between the larger alpha is.
///
///   p_j = max((alpha - 1) z_j - tau, 0)^(1 / (alpha - 1))      with  sum p = 1
///
/// Peters, Niculae & Martins 2019, arXiv:1905.05702; learned alphas and their gradient: Correia, Niculae & Martins
/// 2019, arXiv:1909.00015. The norm of order 1 / (alpha - 1) of max((alpha - 1) z - tau, 0) is convex and decreasing in
/// tau, so Newton's steps towards norm 1 are monotone from the left; no sort and no bisection. For smaller alphas,
/// Halley's steps, which are longer.
namespace lacuna::types::entmax {

inline constexpr Info kInfo = {.paper = "arXiv:1905.05702", .rows_sum_to_one = true, .sparse = true};

/// The least alpha above 1, and the range of alphas: outside of it the gradient for alpha is unbounded or all rounding.
inline constexpr double kLeastAlpha = 1.01, kAlphaRange = 0.99;

struct Options {
  DoubleOrLearned alpha = {1.5};
  double alpha_init = 1.5;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("alpha", self.alpha, between(1, 2), "1 = softmax, 1.5 = entmax15, 2 = sparsemax; 1 exactly, 1.01 to 2, or learned for each head");
    visit("alpha_init", self.alpha_init, between(kLeastAlpha, 2), "learned only: where alpha starts, between 1.01 and 2 without these two");
  }

#if LACUNA_HOST
  void check(const ConfigNode& node) const {
    const ConfigNode* init = node.find("alpha_init");
    if (!alpha.is_learned && init != nullptr) init->fail("has a meaning with `alpha: learned` only; use alpha, or add `alpha: learned`");
    if (!alpha.is_learned && alpha.value > 1 && alpha.value < kLeastAlpha)
      node.find("alpha")->fail("expected 1 exactly, 1.01 to 2, or learned: between 1 and 1.01, fp32 does not carry the gradient for alpha");
    if (alpha_init <= kLeastAlpha || alpha_init >= 2)
      init->fail("expected a number between 1.01 and 2, without these two: a learned alpha comes near them and never reaches them");
  }
  /// Removes from the written options those that have no effect, so that they can be read again.
  void shorten(ConfigNode& written) const {
    if (!alpha.is_learned) written.erase("alpha_init");
  }
  std::shared_ptr<RowNumbers> make_numbers(int64_t num_heads, int64_t d_model) const;
#endif
};

struct RowMap {
  static constexpr bool keeps_number = true, one_row_per_lane = true;
  Options options;

  LACUNA_HD int num_numbers() const { return options.alpha.is_learned ? 1 : 0; }
  LACUNA_HD bool is_sparse() const { return options.alpha.is_learned || options.alpha.value > 1; }

  /// Turns scores into weights, in place. A learned alpha is the row's number.
  template <Row R>
  LACUNA_HD void forward(R scores, const RowContext<typename R::scalar>& context) const {
    const bool is_fixed = !options.alpha.is_learned;
    if (is_fixed && options.alpha.value == 1) return softmax::RowMap{}.forward(scores, context);
    if (is_fixed && options.alpha.value == 1.5) return entmax15::RowMap{}.forward(scores, context);
    if (is_fixed && options.alpha.value == 2) return sparsemax::RowMap{}.forward(scores, context);
    forward_any(scores, alpha_of(context), context);
  }

  /// Turns d loss / d weights into d loss / d scores, in place; adds d loss / d alpha.
  template <Row R>
  LACUNA_HD void backward(R weights, R gradient, const RowContext<typename R::scalar>& context) const {
    using S = typename R::scalar;
    const S alpha = alpha_of(context);
    const auto steepness = [=](auto p) { return row::positive_power(p, 2 - alpha); };
    if (!options.alpha.is_learned) return center_on(weights, gradient, steepness);
    S steep, steep_gradient, curved, curved_gradient;
    weights.sums(
        gradient,
        [=](auto p, auto g, auto& s, auto& sg) {
          s = steepness(p);
          sg = s * g;
        },
        steep, steep_gradient);
    const S mean = steep_gradient / steep;
    weights.sums(
        gradient,
        [=](auto p, auto g, auto& c, auto& cg) {
          c = curvature(p, alpha);
          cg = c * (g - mean);
        },
        curved, curved_gradient);
    gradient.map(weights, [=](auto g, auto p) { return steepness(p) * (g - mean); });
    // The mean is rounded, and long even rows have much curvature: what it lacks shows in the sum of the gradients.
    const S lacks = gradient.sum([](auto g) { return g; }) / steep;
    context.add_gradient(0, curved * lacks - curved_gradient);
  }

 private:
  template <class S>
  LACUNA_HD S alpha_of(const RowContext<S>& context) const {
    return options.alpha.is_learned ? context.number(0) : static_cast<S>(options.alpha.value);
  }

  template <Row R>
  LACUNA_HD void forward_any(R scores, typename R::scalar alpha, const RowContext<typename R::scalar>& context) const {
    using S = typename R::scalar;
    const S top = scores.max();
    scores.map([=](auto z) { return (z - top) * (alpha - 1); });
    const S power = 1 / (alpha - 1);
    const S to_share = context.kept_or([&] { return 1 / threshold(above(scores, S(-1)), alpha); });  // tau >= -1: no other key has weight
    // z * to_share is the share of the way from the top to the threshold. A small share keeps all its digits.
    const auto weigh = [=](auto z, auto& weight, auto& slope) {
      const auto share = z * to_share;
      weight = row::power_of_one_plus(-share, power);
      slope = weight / (row::relu(S(1) - share) + S(1e-30));  // 0 where the weight is
    };
    S total, steep;
    scores.sums(weigh, total, steep);
    // The threshold is a number of few digits, by whose last one every weight is off alike: many small ones by much,
    // together. What they lack or have too much is shared out by slope, as another threshold would. So they sum to
    // `whole`, but for rounding, and are divided by their sum: by its inverse, which may be off by one more rounding,
    // the same for all, and saves each weight a division.
    const S whole = row::positive_power(-to_share, power), excess = (total - whole) / steep, scale = 1 / whole;
    scores.map([=](auto z) {
      decltype(z) weight = z, slope = z;
      weigh(z, weight, slope);
      return row::relu(weight - slope * excess) * scale;
    });
  }

  /// Returns tau, to the precision of the number.
  template <Row R>
  LACUNA_HD static typename R::scalar threshold(R candidates, typename R::scalar alpha) {
    using row::relu, row::positive_power, row::select;
    using S = typename R::scalar;
    constexpr int kMostCurved = 8;  // steps; two or three suffice, and should they ever cycle, Newton's converge
    const S order = alpha - 1, power = 1 / order, cubic = (2 + order) / 3;
    const auto is_bent = power > S(1.8);
    int steps = 0;
    return row::search(S(-1), [&](S before, S& tau) {
      const auto is_curved = is_bent && ++steps <= kMostCurved;
      S mass, slope, bend;
      candidates.sums(
          [=](auto z, auto& p, auto& first, auto& second) {
            const auto distance = relu(z - before);
            second = positive_power(distance, power - 2);
            first = second * distance;
            p = first * distance;
          },
          mass, slope, bend);
      const S excess = mass - 1;
      // The part of the norm that is above 1, 1 - mass^-order, is part / whole: exact to x^4 and, for x > 0, too small
      // beyond. Newton's step is that times mass / slope, Halley's is bent by the second derivative. All over one
      // divisor: short rows wait for each division.
      const S part = 2 * order * excess * (2 + excess), whole = 4 + 2 * excess + (1 + order) * excess * (2 + cubic * excess);
      const S steep = slope * slope, straight = whole * steep;
      const S bent = select(is_curved, straight - (power - 1) * (bend * mass - steep) * part / 2, straight);
      const S least = (straight + part * steep) / 2;  // a step over less than this would pass the top
      tau = before + part * mass * slope / select(bent > least, bent, least);
      // By how much any weight may still be wrong after that step: bounds found by trying many rows at every alpha,
      // which a test repeats.
      const S square = excess * excess, size = select(excess < S(0), -excess, excess);
      const S left = select(order <= S(1) / 3, size * square / 100, select(is_bent, square / 30, 100 * square));
      return tau != before && left > S(R::tolerance) && (is_bent || excess > S(0));
    });
  }

  /// (p^(2 - alpha) - p + (alpha - 1) p ln p) / (alpha - 1)², and 0 where p is 0. With m the mean of g on p^(2 -
  /// alpha), the gradient for alpha is -sum_j curvature(p_j) (g_j - m): the cited formula with its terms gathered, so
  /// that none is divided by alpha - 1 to cancel.
  template <class X, class S>
  LACUNA_HD static X curvature(X p, S alpha) {
    using row::exponential, row::logarithm, row::is_at_least;
    constexpr S kTiny = S(1e-37);  // keeps the logarithm finite where p is 0
    constexpr S kFar = S(0.5);     // e^x - 1 - x as it stands loses digits below
    const S order = alpha - 1;
    const X x = logarithm(p + kTiny) * -order, is_far = is_at_least(x, kFar);
    X series = x * (S(1) / 12) + S(1);  // of 2 (e^x - 1 - x) / x²
    for (int n = 11; n >= 3; --n) series = series * x * (S(1) / static_cast<S>(n)) + S(1);
    const X remainder = is_far * (exponential(x) - S(1) - x) + (S(1) - is_far) * x * x * series * S(0.5);
    return p * remainder * (1 / (order * order));
  }
};

#if LACUNA_HOST  // read by the C++ compiler only, never by nvcc
/// An alpha for each head: 1.01 + 0.99 sigmoid(a), a the parameter `alpha_logit` [H].
class Numbers : public RowNumbers {
 public:
  Numbers(double alpha_init, int64_t num_heads) {
    const double share = (alpha_init - kLeastAlpha) / kAlphaRange;
    alpha_logit_ = register_parameter("alpha_logit", at::full({num_heads}, std::log(share / (1 - share)), at::kFloat));
  }
  std::vector<RowNumber> forward(const Tensor& /*x*/) override {
    const bool is_simple = alpha_logit_.is_cpu() && alpha_logit_.scalar_type() == at::kFloat;
    if (is_simple && !at::GradMode::is_enabled()) return {{"alpha", one_by_one()}};
    return {{"alpha", alpha_logit_.sigmoid().mul(kAlphaRange).add_(kLeastAlpha)}};
  }

 private:
  /// Computes the alphas without LibTorch's operations, whose overhead for so few numbers shows when translating.
  Tensor one_by_one() const {
    Tensor alphas = at::empty_like(alpha_logit_);
    const float* logits = alpha_logit_.const_data_ptr<float>();
    std::transform(logits, logits + alphas.numel(), alphas.mutable_data_ptr<float>(),
                   [](float logit) { return static_cast<float>(kLeastAlpha + kAlphaRange / (1 + std::exp(-double{logit}))); });
    return alphas;
  }

  Tensor alpha_logit_;
};

inline std::shared_ptr<RowNumbers> Options::make_numbers(int64_t num_heads, int64_t /*d_model*/) const {
  return alpha.is_learned ? std::make_shared<Numbers>(alpha_init, num_heads) : nullptr;
}

inline std::vector<Example> examples() {
  return {{.scores = {0, -.4, -2}, .weights = {.64, .36, 0}, .options = "{alpha: 1.5}"},
          {.scores = {-2, 0, .5}, .weights = {0, .25, .75}, .options = "{alpha: 2}"},
          {.scores = {0, std::log(3.0)}, .weights = {.25, .75}, .options = "{alpha: 1}"},
          {.scores = {7, 7}, .weights = {.5, .5}, .options = "{alpha: 1.3}"},
          {.scores = {0, -4}, .weights = {1, 0}, .options = "{alpha: 1.25}"},
          {.scores = {7, 7}, .weights = {.5, .5}, .options = "{alpha: 1.6}"},
          {.scores = {-2, 0, -.4}, .weights = {0, .64, .36}, .options = "{alpha: learned}"},
          {.scores = {0, -4}, .weights = {1, 0}, .options = "{alpha: learned, alpha_init: 1.25}"}};
}
#endif

}  // namespace lacuna::types::entmax
