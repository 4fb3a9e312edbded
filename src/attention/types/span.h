#pragma once

#include <cmath>

#include "attention/types/softmax.h"
#include "config/config_node.h"
#if LACUNA_HOST
#include "attention/rows/row_numbers.h"
#include "kernels/layers.h"
#include "kernels/packed_weight.h"
#endif

/// Adaptive span: softmax over the keys nearby, as far as each head has learned to look.
///
///   p_j = m(d_j) exp(z_j) / sum_i m(d_i) exp(z_i)      m(d) = min(max((R + s - d) / R, 0), 1)
///
/// d_j is the distance between query and key, s the span, R the ramp over which a key's weight falls from its softmax's
/// to 0. Sukhbaatar et al. 2019, arXiv:1905.07799, eq. 2 to 5: a penalty on spans lets them grow only where that pays.
/// Keys from s + R on have weight exactly 0: the core leaves them out. A row without any nearer key, as it can be
/// between two sentences only, is 0.
namespace lacuna::types::span {

inline constexpr Info kInfo = {.paper = "arXiv:1905.07799", .rows_sum_to_one = true, .uses_positions = true, .needs_distance = true};

enum class Learner { kPerHead, kDynamic };

struct Options {
  int64_t max_span = 64;
  double span_init = 8;
  double ramp = 4;
  Learner span = Learner::kPerHead;
  double penalty = 1e-4;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("max_span", self.max_span, between(1, 65536), "positions that a span reaches at most");
    visit("span_init", self.span_init, at_least(0), "positions that spans reach at the start; 0 = the ramp alone");
    visit("ramp", self.ramp, between(2, 65536), "positions beyond the span over which weights fall to 0");
    visit("span", self.span, choices<Learner>({{"per_head", Learner::kPerHead}, {"dynamic", Learner::kDynamic}}),
          "a span for each head, or dynamic = one for each head and query, from the layer's input");
    visit("penalty", self.penalty, at_least(0), "times the mean span is added to the loss of each token; 0 = long spans cost nothing");
  }

#if LACUNA_HOST
  void check(const ConfigNode& node) const;
  std::shared_ptr<RowNumbers> make_numbers(int64_t num_heads, int64_t d_model) const;
  std::string unit_of_numbers() const {
    return "max_span " + std::to_string(max_span);
  }
#endif
};

/// The mask m for the keys of one row.
template <class S>
struct Mask {
  S query, ramp, span;

  /// Returns the positions from the key to where m ends: R + s - d.
  template <class X>
  LACUNA_HD X left(X key) const {
    using row::relu;
    return (ramp + span) - (relu(key - query) + relu(query - key));
  }
  template <class X>
  LACUNA_HD X operator()(X key) const {
    using row::relu, row::if_below;
    const X share = relu(left(key)) * (1 / ramp);
    return if_below(share, S(1), S(1)) + (share - share);  // NaN stays
  }
};

struct RowMap {
  static constexpr bool rows_together = true;
  Options options;

  LACUNA_HD int num_numbers() const { return 1; }
  /// Returns R + s in whole positions, with room for rounding to float; every position for a span that is not a number.
  LACUNA_HD int reach(const double* numbers) const {
    constexpr int kFarthest = 1 << 20;
    const double reach = (options.ramp + numbers[0]) * (1 + 1e-6);
    return reach < kFarthest ? static_cast<int>(std::floor(reach)) : kFarthest;
  }

  /// Turns scores into weights, in place. The span is the row's number.
  template <Row R>
  LACUNA_HD void forward(R scores, const RowContext<typename R::scalar>& context) const {
    using row::exponential, row::select;
    using S = typename R::scalar;
    constexpr S kLowest = S(-1e30);
    const Mask<S> mask = mask_of(context);
    // The top is that of the keys with weight. Chosen, not multiplied: 0 times a score that is infinite would be NaN.
    scores.map_indexed([=](auto z, auto key) { return select(mask.left(key) > S(0), z, decltype(z)(kLowest)); });
    const S top = scores.max();
    scores.map_indexed([=](auto z, auto key) {
      const auto weight = mask(key) * exponential(z - top);
      return select(mask.left(key) <= S(0), decltype(z)(S(0)), weight);  // of a span that is NaN, NaN stays
    });
    const S total = scores.sum([](auto p) { return p; });
    const S scale = select(total > S(0), 1 / total, S(0));
    scores.map([=](auto p) { return p * scale; });
  }

  /// Turns d loss / d weights into d loss / d scores, in place: softmax's. Adds d loss / d span: a key on the ramp
  /// gains 1 / (R + s - d) of its weight for each position of s, as its score would give it.
  template <Row R>
  LACUNA_HD void backward(R weights, R gradient, const RowContext<typename R::scalar>& context) const {
    using row::is_positive, row::relu;
    using S = typename R::scalar;
    softmax::RowMap{}.backward(weights, gradient);
    const Mask<S> mask = mask_of(context);
    context.add_gradient(0, gradient.sum_indexed([=](auto of_score, auto key) {
      const auto left = mask.left(key);
      const auto has_weight = is_positive(left), is_on_ramp = has_weight * is_positive(mask.ramp - left);
      return is_on_ramp * of_score / (relu(left) + (S(1) - has_weight));
    }));
  }

 private:
  template <class S>
  LACUNA_HD Mask<S> mask_of(const RowContext<S>& context) const {
    return {.query = context.position, .ramp = static_cast<S>(options.ramp), .span = context.number(0)};
  }
};

#if LACUNA_HOST  // read by the C++ compiler only, never by nvcc
inline void Options::check(const ConfigNode& node) const {
  const double highest = static_cast<double>(max_span);
  const bool is_open = span == Learner::kDynamic;
  if (is_open ? span_init > 0 && span_init < highest : span_init <= highest) return;
  const ConfigNode* init = node.find("span_init");
  if (init == nullptr)
    node.find("max_span")->fail("expected a number beyond span_init, the positions that spans reach at the start; set it too");
  init->fail(is_open ? "expected more than 0 and less than max_span: a dynamic span comes near these and never reaches them"
                     : "expected at most max_span");
}

/// A span for each head: max_span times the parameter `span_ratio` [H], which stays between 0 and 1.
class PerHeadSpans : public RowNumbers {
 public:
  PerHeadSpans(const Options& options, int64_t num_heads)
      : max_span_(static_cast<double>(options.max_span)),
        penalty_(options.penalty),
        ratio_(register_parameter("span_ratio", at::full({num_heads}, options.span_init / max_span_, at::kFloat))) {}
  std::vector<RowNumber> forward(const Tensor& /*x*/) override { return {{"span", max_span_ * ratio_, penalty_}}; }
  std::vector<ParameterRange> ranges() const override { return {{"span_ratio", 0, 1}}; }

 private:
  double max_span_, penalty_;
  Tensor ratio_;
};

/// A span for each head and query: max_span sigmoid(v.x + b), of the layer's input x and the parameters `span_weight` v
/// [H, D] and `span_bias` b [H].
class DynamicSpans : public RowNumbers {
 public:
  DynamicSpans(const Options& options, int64_t num_heads, int64_t d_model)
      : max_span_(static_cast<double>(options.max_span)),
        penalty_(options.penalty),
        weight_(register_parameter("span_weight", at::zeros({num_heads, d_model}, at::kFloat))),
        bias_(register_parameter("span_bias",
                                 at::full({num_heads}, std::log(options.span_init / (max_span_ - options.span_init)), at::kFloat))) {}
  std::vector<RowNumber> forward(const Tensor& x) override {
    const Tensor rows = x.to(weight_.scalar_type());
    const Tensor ratio = at::GradMode::is_enabled() ? lacuna::linear(rows, weight_, bias_).sigmoid()
                                                    : sigmoid_of_each(PackedWeight(weight_).multiply(rows, bias_));
    return {{"span", max_span_ * ratio, penalty_}};
  }

 private:
  /// Returns the sigmoid, with the same bits wherever an element stands: ATen's differs between whole vectors and the
  /// rest.
  static Tensor sigmoid_of_each(const Tensor& x) {
    if (!x.is_cpu()) return x.sigmoid();
    const Tensor result = x.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true).contiguous();
    double* values = result.data_ptr<double>();
    for (int64_t i = 0; i < result.numel(); ++i) values[i] = 1 / (1 + std::exp(-values[i]));
    return result.to(x.scalar_type());
  }

  double max_span_, penalty_;
  Tensor weight_, bias_;
};

inline std::shared_ptr<RowNumbers> Options::make_numbers(int64_t num_heads, int64_t d_model) const {
  if (span == Learner::kPerHead) return std::make_shared<PerHeadSpans>(*this, num_heads);
  return std::make_shared<DynamicSpans>(*this, num_heads, d_model);
}

inline std::vector<Example> examples() {
  const char* const few = "{max_span: 4, span_init: 1.5, ramp: 2}";  // m at distances 0 to 4: 1, 1, 3/4, 1/4, 0
  const double three = std::log(3.0), four = std::log(4.0);
  return {{.scores = {0, three, 0}, .weights = {.2, .6, .2}},
          {.scores = {0, 0, 0, 0, 0, 0, 0, 0}, .weights = {0, .05, .15, .2, .2, .2, .15, .05}, .options = few},
          {.scores = {four, 0, three, 0, -1e4}, .weights = {.375, .125, .375, .125, 0}, .options = few},
          {.scores = {1e4, 0, 0, 0, 0, 0, 0, 0, 1e4}, .weights = {0, .05, .15, .2, .2, .2, .15, .05, 0}, .options = few},
          {.scores = {0, 0, 0, 0, 0, 0, 0, 0},
           .weights = {0, .05, .15, .2, .2, .2, .15, .05},
           .options = "{span: dynamic, max_span: 4, span_init: 1.5, ramp: 2}"}};
}
#endif

}  // namespace lacuna::types::span
