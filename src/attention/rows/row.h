#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "base/macros.h"
#include "config/describe.h"

/// The primitives that an attention type is written with. A *row* is the scores (later the weights) of one query over
/// the keys it sees. A type's maths is written once, on rows, and runs on vectors of floats (row_simd.h), on a plain
/// row of double (row_plain.h), and on a warp of a GPU. A forward pass without branches on a row's numbers (row::select
/// and row::search stand for them) may also run on many short rows, one in each lane of a vector (row_simd.h),
/// where a row's numbers are vectors too: such a RowMap declares one_row_per_lane. A GPU works on rows of some hundred keys
/// likewise, many at once (gpu/register_row.h), where the backward pass may not branch either: a RowMap that is for it
/// alone declares rows_together.
///
/// A row holds visible keys only and is never empty: no type has to think of keys that are hidden.

// What is not about rows in a type's file (its options' checks, its learned parameters, its examples) stands between
// #if LACUNA_HOST and #endif, hidden from nvcc and from files compiled for each instruction set (type_simd.cpp.in).
#ifdef __CUDACC__
#define LACUNA_HD LACUNA_HOST_DEVICE __forceinline__  // else arrays that it is given would not stay in registers
#define LACUNA_ROWS_ONLY
#else
// Always inlined: compiled for several instruction sets, of which the linker must never pick one for the others.
#define LACUNA_HD [[gnu::always_inline]] inline
#endif

#ifdef LACUNA_ROWS_ONLY
#define LACUNA_HOST 0
#else
#define LACUNA_HOST 1
#endif

namespace lacuna::types {

/// Properties of every row of weights that a type gives.
struct Info {
  const char* paper = "";
  bool rows_sum_to_one = false;
  /// True if a key of weight zero gets no gradient and such keys are many: the core skips their work.
  /// RowMap::is_sparse(), if any, decides.
  bool sparse = false;
  bool uses_positions = false;        ///< map_indexed or sum_indexed is used, so the core fills in the keys' positions
  bool needs_distance = false;        ///< keys are weighed by their distance: without meaning on cross attention
  const char* default_norm = "none";  ///< norm over the concatenated heads, unless the configuration names one
};

/// Scores of n keys and the weights that they must become: every type's file holds some. To a type that looks at
/// positions, the keys stand at 0, 1, ... and the query at n / 2.
struct Example {
  std::vector<double> scores = {}, weights = {};
  std::string options = {};  ///< as in YAML's flow style, "{k: 2}"; empty = the defaults
};

namespace row {

// Functions of one number. Each row's header has the same functions for its own kind of number.
template <std::floating_point T>
LACUNA_HD T relu(T x) {
  return x <= 0 ? T(0) : x;  // NaN stays, here and below: a loop must see it
}
/// Returns 1 where x > 0, else 0.
template <std::floating_point T>
LACUNA_HD T is_positive(T x) {
  return x > 0 ? T(1) : T(0);
}
/// Returns 1 where x >= bound, else 0.
template <std::floating_point T>
LACUNA_HD T is_at_least(T x, T bound) {
  return x >= bound ? T(1) : T(0);
}
/// Returns x where x < bound, else `otherwise`.
template <std::floating_point T>
LACUNA_HD T if_below(T x, T bound, T otherwise) {
  return x < bound ? x : otherwise;
}
/// Maps a number's bits to its place among all numbers of its kind in order, and back.
template <std::signed_integral I>
LACUNA_HD I bits_in_order(I bits) {
  constexpr I kAllButSign = std::numeric_limits<I>::max();
  return bits < 0 ? bits ^ kAllButSign : bits;
}
/// Returns the number in the middle between low and high in the order of all numbers that T can hold; low <= high.
/// Halved in this way, any range comes down to neighbors in as many steps as T has bits.
template <std::floating_point T>
LACUNA_HD T middle_in_order(T low, T high) {
  using Place = std::conditional_t<sizeof(T) == sizeof(int32_t), int32_t, int64_t>;
  using Distance = std::make_unsigned_t<Place>;
  const auto first = static_cast<Distance>(bits_in_order(__builtin_bit_cast(Place, low)));
  const auto last = static_cast<Distance>(bits_in_order(__builtin_bit_cast(Place, high)));
  return __builtin_bit_cast(T, bits_in_order(static_cast<Place>(first + (last - first) / 2)));
}
template <std::floating_point T>
LACUNA_HD T exponential(T x) {
  return std::exp(x);
}
/// Returns the natural logarithm; x > 0.
template <std::floating_point T>
LACUNA_HD T logarithm(T x) {
  return std::log(x);
}
template <std::floating_point T>
LACUNA_HD T root(T x) {
  return std::sqrt(x);
}
/// Returns x^power where x > 0, else 0.
template <std::floating_point T>
LACUNA_HD T positive_power(T x, T power) {
  return x <= 0 ? T(0) : std::exp(std::log(x) * power);
}
/// Returns (1 + x)^power where x > -1, else 0; exact to rounding for small x too.
template <std::floating_point T>
LACUNA_HD T power_of_one_plus(T x, T power) {
  return x <= -1 ? T(0) : std::exp(std::log1p(x) * power);
}
// These replace branches on numbers of a row, which are vectors where each lane has its own row.
template <std::floating_point T>
LACUNA_HD T select(bool condition, T yes, T no) {
  return condition ? yes : no;
}
LACUNA_HD bool any(bool condition) {
  return condition;
}
/// Returns what a comparison of such numbers gives where it holds for all rows.
template <std::floating_point T>
LACUNA_HD bool all_true(T /*x*/) {
  return true;
}
/// Repeats x <- next as long as step(x, next) holds, and returns the last `next`. With a row in each lane, each row
/// stops at its own end.
template <class T, class F>
LACUNA_HD T search(T x, F step) {
  auto goes_on = all_true(x);
  do {
    T next;
    const auto also = step(x, next);
    x = select(goes_on, next, x);
    goes_on = goes_on && also;
  } while (any(goes_on));
  return x;
}
/// Returns the density of the standard normal distribution.
template <std::floating_point T>
LACUNA_HD T normal_density(T x) {
  return T(0.3989422804014326779) * std::exp(x * x * T(-0.5));
}
/// Returns the probability that a standard normal variable is at most x.
template <std::floating_point T>
LACUNA_HD T normal_cdf(T x) {
  return T(0.5) * std::erfc(-x * T(0.7071067811865475244));
}

}  // namespace row

/// The input of a row map beside the row: whether the model is in training, the query's position, and the learned
/// numbers of this row in the order in which the type names them. The backward pass adds to their gradients.
template <class S>
struct RowContext {
  using Gradient = std::conditional_t<std::is_arithmetic_v<S>, double, S>;

  bool training = false;
  S position = 0;
  int num_numbers = 0;
  const S* numbers = nullptr;
  Gradient* number_gradients = nullptr;
  // A number of the row that is found by passes over it (such as a threshold): the forward pass keeps it (null = does
  // not), so that it is known where the backward pass computes the weights again.
  S* kept_number = nullptr;
  bool is_recomputed = false;
  bool* is_searching = nullptr;  ///< set while such a number is being found, if it is not null

  LACUNA_HD S number(int i) const { return numbers[i]; }
  LACUNA_HD void add_gradient(int i, S gradient) const { number_gradients[i] += gradient; }
  /// Returns true if the number is known from the forward pass.
  LACUNA_HD bool has_kept_number() const { return is_recomputed && kept_number != nullptr; }
  /// Returns the number that the forward pass kept, or else that of search(), which is kept. For types with
  /// `keeps_number` in their RowMap, once in a row.
  template <class F>
  LACUNA_HD S kept_or(F search) const {
    if (has_kept_number()) return *kept_number;
    if (is_searching != nullptr) *is_searching = true;
    const S number = search();
    if (is_searching != nullptr) *is_searching = false;
    if (kept_number != nullptr) *kept_number = number;
    return number;
  }
};

/// Stands for a row map's lambdas below (nvcc takes no generic lambdas in a concept).
struct AnyOf {
  template <class X, class... Rest>
  LACUNA_HD X operator()(X x, Rest&&...) const {
    return x;
  }
};

/// A row, or many rows with one in each lane. It has size(); max() and max(f); sum(f) and sums(f, first, second, ...),
/// many sums in one pass; map(f), in place; map_and_sum(f), both at once.
template <class R>
concept Row = requires(R r, AnyOf f, typename R::scalar s) {
  { r.size() } -> std::convertible_to<int>;
  { r.max() } -> std::convertible_to<typename R::scalar>;
  { r.max(f) } -> std::convertible_to<typename R::scalar>;
  { r.sum(f) } -> std::convertible_to<typename R::scalar>;
  r.sums(f, s, s);
  r.map(f);
  { r.map_and_sum(f) } -> std::convertible_to<typename R::scalar>;
  { R::tolerance } -> std::convertible_to<typename R::scalar>;
};

/// A single row. It has, beyond Row, functions over two rows: sum(other, f), sums(other, f, first, second, ...),
/// map(other, f); map_indexed(f) and sum_indexed(f), which hand f each element and its key's position; pack(f), which
/// returns the shorter row of the elements where f is not 0, in scratch memory, where it can be packed again.
template <class R>
concept SingleRow = Row<R> && requires(R r, AnyOf f, typename R::scalar s) {
  { r.sum(r, f) } -> std::convertible_to<typename R::scalar>;
  r.sums(r, f, s, s);
  r.map(r, f);
  r.map_indexed(f);
  { r.sum_indexed(f) } -> std::convertible_to<typename R::scalar>;
  { r.pack(f) } -> std::same_as<R>;
};

/// Returns f(the row's size); with a row in each lane, of each row's size.
template <Row R, class F>
LACUNA_HD typename R::scalar of_size(R row, F f) {
  if constexpr (requires { row.of_sizes(f); }) {
    return row.of_sizes(f);
  } else {
    return static_cast<typename R::scalar>(f(row.size()));
  }
}

/// Returns the elements of a long row above `bound`, at least one, in scratch memory; a short row as it is.
template <Row R>
LACUNA_HD R above(R scores, typename R::scalar bound) {
  using row::is_at_least;
  if constexpr (SingleRow<R>) {
    constexpr int kWorthPacking = 64;  // in shorter rows, packing costs what it saves
    const auto is_above = [=](auto x) { return typename R::scalar(1) - is_at_least(-x, -bound); };  // NaN too
    if (scores.size() >= kWorthPacking) return scores.pack(is_above);
  } else if constexpr (requires { scores.above(bound); }) {
    return scores.above(bound);
  }
  return scores;
}

/// Computes gradient <- s (gradient - its mean on s), s = weigh(weights): the backward pass of maps onto the simplex.
template <Row R, class F>
LACUNA_HD void center_on(R weights, R gradient, F weigh) {
  typename R::scalar total, weighted;
  weights.sums(
      gradient,
      [=](auto p, auto g, auto& s, auto& product) {
        s = weigh(p);
        product = s * g;
      },
      total, weighted);
  const auto mean = weighted / total;
  gradient.map(weights, [=](auto g, auto p) { return weigh(p) * (g - mean); });
}

}  // namespace lacuna::types
