#pragma once

#include <cmath>

#include "attention/types/softmax.h"
#include "config/config_node.h"

/// Explicit sparse attention: softmax over the k best keys.
///
///   p = softmax over { j : z_j >= t },  t the k-th largest score; ties at t stay, and n <= k keeps all
///
/// Zhao et al. 2019, arXiv:1912.11637, eq. 7 to 9. t by halving the range in which it must lie until k scores are
/// above, or so few left in it that it is worth stepping down from one to the next; no sort. Scores much closer
/// together than their range is wide need more than 24 halvings; each further one halves how many floats lie in the
/// range, so at most 32 follow. Backward: softmax's on the survivors, t being a constant.
namespace lacuna::types::topk {

inline constexpr Info kInfo = {.paper = "arXiv:1912.11637", .rows_sum_to_one = true, .sparse = true};

enum class Sparsify { kAlways, kTrain };

struct Options {
  int64_t k = 8;
  double ratio = 0;
  int64_t floor = 8;
  Sparsify sparsify = Sparsify::kAlways;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("k", self.k, at_least(1), "keys kept for each query");
    visit("ratio", self.ratio, at_least(0),
          "in place of k, 1 or more: one key in so many is kept, max(floor, ceil(n / ratio)) of n visible; 0 = k");
    visit("floor", self.floor, at_least(1), "with ratio: keys kept at least");
    visit("sparsify", self.sparsify, choices<Sparsify>({{"always", Sparsify::kAlways}, {"train", Sparsify::kTrain}}),
          "train = dense when translating");
  }

#if LACUNA_HOST
  void check(const ConfigNode& node) const {
    if (ratio > 0 && ratio < 1) node.find("ratio")->fail("expected 1 or more: of n keys, n / ratio are kept");
    if (ratio > 0 && node.find("k") != nullptr) node.find("k")->fail("expected k, or ratio and floor, not both");
    if (ratio == 0 && node.find("floor") != nullptr) node.find("floor")->fail("has a meaning with `ratio` only; use k, or add ratio");
  }
  /// Removes from the written options those that have no effect, so that they can be read again.
  void shorten(ConfigNode& written) const {
    if (ratio > 0) return written.erase("k");
    written.erase("ratio");
    written.erase("floor");
  }
#endif
};

struct RowMap {
  static constexpr bool keeps_number = true, one_row_per_lane = true;
  Options options;

  /// Turns scores into weights, in place.
  template <Row R>
  LACUNA_HD void forward(R scores, const RowContext<typename R::scalar>& context) const {
    using row::exponential, row::is_at_least;
    using S = typename R::scalar;
    const S top = scores.max();
    S total;
    if (options.sparsify == Sparsify::kTrain && !context.training) {
      total = scores.map_and_sum([=](auto z) { return exponential(z - top); });
    } else {
      const S threshold = context.kept_or([&] { return kth_largest(scores, of_size(scores, [&](int n) { return num_kept(n); }), top); });
      total = scores.map_and_sum([=](auto z) { return is_at_least(z, threshold) * exponential(z - top); });
    }
    const S scale = 1 / total;
    scores.map([=](auto p) { return p * scale; });
  }

  /// Turns d loss / d weights into d loss / d scores, in place: softmax's.
  template <Row R>
  LACUNA_HD void backward(R weights, R gradient) const {
    softmax::RowMap{}.backward(weights, gradient);
  }

 private:
  LACUNA_HD int num_kept(int n) const {
    if (options.ratio == 0) return options.k < n ? static_cast<int>(options.k) : n;
    const int share = static_cast<int>(std::ceil(n / options.ratio));
    return options.floor > share ? static_cast<int>(options.floor < n ? options.floor : n) : share;
  }

  /// Returns some t such that the scores >= t are the k largest and those equal to the k-th; all, if there are k or
  /// fewer. Scores too far below the top to have weight may be less than t in any case.
  template <Row R>
  LACUNA_HD static typename R::scalar kth_largest(R scores, typename R::scalar k, typename R::scalar top) {
    using row::any, row::if_below, row::is_at_least, row::middle_in_order, row::select;
    using S = typename R::scalar;
    R candidates = scores;
    S beyond = 0;  // scores above all candidates
    const auto count_from = [&](S t) { return beyond + candidates.sum([=](auto z) { return is_at_least(z, t); }); };
    constexpr int kBeyondWeight = 1024;  // so far below top, exp(z - top) is 0
    const S far = top - S(kBeyondWeight), least = -scores.max([](auto z) { return -z; });
    S low = select(least < far, far, least);         // at least k scores are >= low, or all that can have weight
    S high = top + (top - low) / 16, from_high = 0;  // fewer than k scores are >= high; from_high of them, in a row to be packed
    const S size = of_size(scores, [](int n) { return n; });
    const auto leaves_some = k < size;
    auto is_sought = leaves_some && (high > top || count_from(top) < k);
    if constexpr (SingleRow<R>)
      if (is_sought && !(high > top)) from_high = count_from(top);  // all lie within a few units in the last place of top
    S found = select(leaves_some, top, low);
    S from_low = size;
    if (any(is_sought && least < far)) {
      from_low = count_from(low);
      found = select(is_sought && from_low <= k, low, found);
      is_sought = is_sought && k < from_low;
    }
    // Every kHalvingsPerPack halvings, a long row is packed to the scores in the range. After kHalvings, few should lie
    // there. Where more do (one score far from others), halving goes on while there is a number between low and high.
    constexpr int kHalvings = 16, kHalvingsOfRange = 24, kHalvingsPerPack = 3, kWorthPacking = 64, kFewLeft = 8;
    const auto middle_at = [&](int i) { return i < kHalvingsOfRange ? low + (high - low) / 2 : middle_in_order(low, high); };
    const auto goes_on = [&](S middle) { return is_sought && from_low > from_high + S(kFewLeft) && low < middle && middle < high; };
    for (int i = 0; any(is_sought) && (i < kHalvings || any(goes_on(middle_at(i)))); ++i) {
      if constexpr (SingleRow<R>) {
        if (i > 0 && i % kHalvingsPerPack == 0 && candidates.size() >= kWorthPacking) {
          candidates = candidates.pack([=](auto z) { return is_at_least(z, low) * (S(1) - is_at_least(z, high)); });
          beyond = from_high;
        }
      }
      const S middle = middle_at(i), count = count_from(middle);
      found = select(is_sought, middle, found);
      is_sought = is_sought && count != k;
      low = select(count > k, middle, low);
      from_low = select(count > k, count, from_low);
      from_high = select(count < k, count, from_high);
      high = select(count < k, middle, high);
    }
    while (any(is_sought)) {
      const S next = candidates.max([=](auto z) { return if_below(z, high, low); });
      found = select(is_sought, next, found);
      is_sought = is_sought && next > low && count_from(next) < k;  // NaN ends it too
      high = next;
    }
    return found;
  }
};

#if LACUNA_HOST  // read by the C++ compiler only, never by nvcc
inline std::vector<Example> examples() {
  const double three = std::log(3.0);
  return {{.scores = {0, -1, three}, .weights = {.25, 0, .75}, .options = "{k: 2}"},
          {.scores = {0, -1, 0, three, 0}, .weights = {1 / 6., 0, 1 / 6., .5, 1 / 6.}, .options = "{k: 2}"},
          {.scores = {0, three}, .weights = {.25, .75}},
          {.scores = {5, 1, 2, 3}, .weights = {1, 0, 0, 0}, .options = "{ratio: 4, floor: 1}"}};
}
#endif

}  // namespace lacuna::types::topk
