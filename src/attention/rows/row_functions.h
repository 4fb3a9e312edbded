#pragma once

#include <cstdint>
#include <type_traits>

#include "attention/rows/row.h"

/// Turns a type's RowMap into plain functions that the core calls: one set for each kind of row.
namespace lacuna::types {

/// The arguments of a RowFunction as plain data, which may cross between files compiled for different instruction sets.
template <class S>
struct RowCall {
  S* weights;          ///< forward: scores in, weights out. backward: weights
  S* gradient;         ///< backward: d loss / d weights in, d loss / d scores out
  S* scores;           ///< backward, for types that need them, else null
  const S* positions;  ///< of the keys, for types that need them, else null
  S* scratch;          ///< room for a row
  int length;          ///< at least 1
  RowContext<S> context;
};

template <class S>
using RowFunction = void (*)(const void* options, const RowCall<S>& call);

/// A row of its own, where many rows become weights in one call.
template <class S>
struct RowPlace {
  S* weights;
  int length;
  // As in RowContext:
  S position;
  const S* numbers;
  S* kept_number;
};

/// Turns many rows of scores into weights: `call` holds what they share.
template <class S>
using RowsFunction = void (*)(const void* options, const RowCall<S>& call, const RowPlace<S>* places, int count);

template <class S>
struct RowFunctions {
  RowFunction<S> forward = nullptr, backward = nullptr;
  RowsFunction<S> forward_all = nullptr;  ///< a row's bits do not depend on the other rows
};

template <class Map, class R>
concept HasForward = requires(const Map map, R row) {
  map.forward(row);
}
|| requires(const Map map, R row, RowContext<typename R::scalar> context) {
  map.forward(row, context);
};
/// A map whose backward pass reads the scores. RowMap::needs_scores(), if any, says with which options; with others,
/// they are undefined. With these, a GPU works on single rows alone.
template <class Map, class R>
concept BackwardNeedsScores = requires(const Map map, R row, RowContext<typename R::scalar> context) {
  map.backward(row, row, row, context);
};
template <class Map, class R>
concept HasBackward = BackwardNeedsScores<Map, R> || requires(const Map map, R row) {
  map.backward(row, row);
} || requires(const Map map, R row, RowContext<typename R::scalar> context) {
  map.backward(row, row, context);
};

/// A map that calls RowContext::kept_or().
template <class Map>
concept KeepsNumber = requires {
  Map::keeps_number;
};

/// A map whose forward pass can run on many rows, one in each lane: it is written without a branch on a row's numbers
/// (row::select, row::search).
template <class Map>
concept RunsOneRowPerLane = requires {
  Map::one_row_per_lane;
};

/// A map whose passes may both run on many rows at once, as on a GPU: neither branches on a row's numbers. It declares
/// rows_together, or one_row_per_lane.
template <class Map>
concept RunsOnRowsTogether = RunsOneRowPerLane<Map> || requires {
  Map::rows_together;
};

/// Runs the map's forward pass in the form that it has.
template <class Map, Row R>
LACUNA_HD void run_forward(const Map& map, R scores, [[maybe_unused]] const RowContext<typename R::scalar>& context) {
  if constexpr (requires { map.forward(scores, context); }) {
    map.forward(scores, context);
  } else {
    map.forward(scores);
  }
}

/// Runs the map's backward pass in the form that it has.
template <class Map, Row R>
LACUNA_HD void run_backward(const Map& map, [[maybe_unused]] R scores, R weights, R gradient,
                            [[maybe_unused]] const RowContext<typename R::scalar>& context) {
  if constexpr (BackwardNeedsScores<Map, R>) {
    map.backward(scores, weights, gradient, context);
  } else if constexpr (requires { map.backward(weights, gradient, context); }) {
    map.backward(weights, gradient, context);
  } else {
    map.backward(weights, gradient);
  }
}

/// Returns the map with these options, which it holds as its only member, if it has any.
template <class Map, class Options>
LACUNA_HD Map map_of([[maybe_unused]] const void* options) {
  if constexpr (std::is_empty_v<Options>) {
    return Map{};
  } else {
    return Map{*static_cast<const Options*>(options)};
  }
}

/// The RowFunctions of a type on rows of kind R.
template <class Map, class Options, SingleRow R>
struct RowFunctionsOf {
  using S = typename R::scalar;
  static_assert(HasForward<Map, R>, "RowMap needs forward(scores) or forward(scores, context): scores -> weights, in place");
  static_assert(HasBackward<Map, R>,
                "RowMap needs backward(weights, gradient), backward(weights, gradient, context) or backward(scores, weights, gradient, "
                "context): d loss / d weights -> d loss / d scores, in place");

  static void forward(const void* options, const RowCall<S>& call) {
    const Map map = map_of<Map, Options>(options);
    run_forward(map, R{call.weights, call.length, call.positions, call.scratch}, call.context);
  }

  static void backward(const void* options, const RowCall<S>& call) {
    const Map map = map_of<Map, Options>(options);
    const R scores{call.scores, call.length, call.positions, call.scratch};
    const R weights{call.weights, call.length, call.positions, call.scratch};
    const R gradient{call.gradient, call.length, call.positions, call.scratch};
    run_backward(map, scores, weights, gradient, call.context);
  }

  static void forward_all(const void* options, const RowCall<S>& call, const RowPlace<S>* places, int count) {
    if constexpr (RunsOneRowPerLane<Map> && requires { typename R::Transposed; }) {
      const RowPlace<S>* together[R::Transposed::kMostRows];
      int found = 0;
      for (int i = 0; i < count; ++i) {
        const bool is_short = places[i].length <= R::Transposed::kLongest && call.context.num_numbers <= R::Transposed::kMostNumbers;
        if (is_short) together[found++] = places + i;
        if (found == R::Transposed::kMostRows || (found > 0 && i == count - 1)) {
          forward_in_lanes(map_of<Map, Options>(options), call, together, found);
          found = 0;
        }
        if (!is_short) forward_at(options, call, places[i]);
      }
    } else {
      for (int i = 0; i < count; ++i) forward_at(options, call, places[i]);
    }
  }

  static constexpr RowFunctions<S> get() { return {&forward, &backward, &forward_all}; }

 private:
  static void forward_in_lanes(const Map& map, const RowCall<S>& call, const RowPlace<S>* const* places, int count) {
    typename R::Transposed transposed(places, count);
    run_forward(map, transposed.rows(), transposed.context(call.context));
    transposed.store_rows();
  }
  static void forward_at(const void* options, RowCall<S> call, const RowPlace<S>& place) {
    call.weights = place.weights;
    call.length = place.length;
    call.context.position = place.position;
    call.context.numbers = place.numbers;
    call.context.kept_number = place.kept_number;
    forward(options, call);
  }
};

}  // namespace lacuna::types
