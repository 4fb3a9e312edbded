#pragma once

#include <type_traits>

#include "attention/gpu/lane_layout.h"
#include "attention/rows/row.h"
#include "base/macros.h"

/// Numbers of several rows at once, with the operators and functions that row maps are written with.
namespace lacuna::cuda {

/// A truth value for each row of a lane.
template <class Block>
struct TruthPerRow {
  static constexpr int kRows = LaneLayout<Block>::kRows;
  bool of[kRows];

  LACUNA_HD friend TruthPerRow operator&&(TruthPerRow a, TruthPerRow b) {
    LACUNA_UNROLL
    for (int r = 0; r < kRows; ++r) a.of[r] = a.of[r] && b.of[r];
    return a;
  }
  LACUNA_HD friend TruthPerRow operator&&(TruthPerRow a, bool b) {
    LACUNA_UNROLL
    for (int r = 0; r < kRows; ++r) a.of[r] = a.of[r] && b;
    return a;
  }
  LACUNA_HD friend TruthPerRow operator||(TruthPerRow a, TruthPerRow b) {
    LACUNA_UNROLL
    for (int r = 0; r < kRows; ++r) a.of[r] = a.of[r] || b.of[r];
    return a;
  }
};

template <class X>
concept PlainNumber = std::is_arithmetic_v<X>;

/// A number for each row of a lane. A plain number stands for the same one in each row.
template <class Block>
struct PerRow {
  static constexpr int kRows = LaneLayout<Block>::kRows;
  float of[kRows];

  PerRow() = default;
  template <PlainNumber X>
  LACUNA_HD constexpr PerRow(X x) {
    LACUNA_UNROLL
    for (int r = 0; r < kRows; ++r) of[r] = static_cast<float>(x);
  }

  /// Returns f of each row's number; with others, of the row's number in each of them.
  template <class F, class... Others>
  LACUNA_HD PerRow each(F f, const Others&... others) const {
    PerRow result;
    LACUNA_UNROLL
    for (int r = 0; r < kRows; ++r) result.of[r] = f(of[r], others.of[r]...);
    return result;
  }
  /// Returns where the comparison f holds.
  template <class F>
  LACUNA_HD TruthPerRow<Block> where(F f, const PerRow& other) const {
    TruthPerRow<Block> result;
    LACUNA_UNROLL
    for (int r = 0; r < kRows; ++r) result.of[r] = f(of[r], other.of[r]);
    return result;
  }

  LACUNA_HD friend PerRow operator+(PerRow a, PerRow b) {
    return a.each([](float x, float y) { return x + y; }, b);
  }
  LACUNA_HD friend PerRow operator-(PerRow a, PerRow b) {
    return a.each([](float x, float y) { return x - y; }, b);
  }
  LACUNA_HD friend PerRow operator*(PerRow a, PerRow b) {
    return a.each([](float x, float y) { return x * y; }, b);
  }
  LACUNA_HD friend PerRow operator/(PerRow a, PerRow b) {
    return a.each([](float x, float y) { return x / y; }, b);
  }
  LACUNA_HD friend PerRow operator-(PerRow a) {
    return a.each([](float x) { return -x; });
  }
  LACUNA_HD friend PerRow& operator+=(PerRow& a, PerRow b) { return a = a + b; }
  LACUNA_HD friend TruthPerRow<Block> operator<(PerRow a, PerRow b) {
    return a.where([](float x, float y) { return x < y; }, b);
  }
  LACUNA_HD friend TruthPerRow<Block> operator<=(PerRow a, PerRow b) {
    return a.where([](float x, float y) { return x <= y; }, b);
  }
  LACUNA_HD friend TruthPerRow<Block> operator>(PerRow a, PerRow b) {
    return a.where([](float x, float y) { return x > y; }, b);
  }
  LACUNA_HD friend TruthPerRow<Block> operator!=(PerRow a, PerRow b) {
    return a.where([](float x, float y) { return x != y; }, b);
  }
};

template <class Block>
LACUNA_HD PerRow<Block> select(TruthPerRow<Block> condition, PerRow<Block> yes, PerRow<Block> no) {
  return yes.each([](float x, float y, bool holds) { return holds ? x : y; }, no, condition);
}
/// Returns true if the condition holds for any row of the warp, not of the lane alone: lanes leave a loop together.
template <class Block>
LACUNA_HD bool any(TruthPerRow<Block> condition) {
  bool holds = false;
  LACUNA_UNROLL
  for (int r = 0; r < PerRow<Block>::kRows; ++r) holds = holds || condition.of[r];
  return Block::on_any_lane(holds);
}
template <class Block>
LACUNA_HD TruthPerRow<Block> all_true(PerRow<Block> /*x*/) {
  return PerRow<Block>(0) <= PerRow<Block>(0);
}

// The functions of row.h, row by row.

template <class Block>
LACUNA_HD PerRow<Block> relu(PerRow<Block> x) {
  return x.each([](float of) { return types::row::relu(of); });
}
template <class Block>
LACUNA_HD PerRow<Block> is_positive(PerRow<Block> x) {
  return x.each([](float of) { return types::row::is_positive(of); });
}
template <class Block>
LACUNA_HD PerRow<Block> is_at_least(PerRow<Block> x, PerRow<Block> bound) {
  return x.each([](float of, float least) { return types::row::is_at_least(of, least); }, bound);
}
template <class Block>
LACUNA_HD PerRow<Block> if_below(PerRow<Block> x, PerRow<Block> bound, PerRow<Block> otherwise) {
  return x.each([](float of, float limit, float other) { return types::row::if_below(of, limit, other); }, bound, otherwise);
}
template <class Block>
LACUNA_HD PerRow<Block> middle_in_order(PerRow<Block> low, PerRow<Block> high) {
  return low.each([](float from, float to) { return types::row::middle_in_order(from, to); }, high);
}
template <class Block>
LACUNA_HD PerRow<Block> exponential(PerRow<Block> x) {
  return x.each([](float of) { return types::row::exponential(of); });
}
template <class Block>
LACUNA_HD PerRow<Block> logarithm(PerRow<Block> x) {
  return x.each([](float of) { return types::row::logarithm(of); });
}
template <class Block>
LACUNA_HD PerRow<Block> root(PerRow<Block> x) {
  return x.each([](float of) { return types::row::root(of); });
}
template <class Block>
LACUNA_HD PerRow<Block> positive_power(PerRow<Block> x, PerRow<Block> power) {
  return x.each([](float of, float exponent) { return types::row::positive_power(of, exponent); }, power);
}
template <class Block>
LACUNA_HD PerRow<Block> power_of_one_plus(PerRow<Block> x, PerRow<Block> power) {
  return x.each([](float of, float exponent) { return types::row::power_of_one_plus(of, exponent); }, power);
}
template <class Block>
LACUNA_HD PerRow<Block> normal_density(PerRow<Block> x) {
  return x.each([](float of) { return types::row::normal_density(of); });
}
template <class Block>
LACUNA_HD PerRow<Block> normal_cdf(PerRow<Block> x) {
  return x.each([](float of) { return types::row::normal_cdf(of); });
}

}  // namespace lacuna::cuda

namespace lacuna::types::row {  // so that row::relu(x) finds them too; a type's file is included after this one
using cuda::all_true, cuda::any, cuda::exponential, cuda::if_below, cuda::is_at_least, cuda::is_positive, cuda::logarithm,
    cuda::middle_in_order, cuda::normal_cdf, cuda::normal_density, cuda::positive_power, cuda::power_of_one_plus, cuda::relu, cuda::root,
    cuda::select;
}
