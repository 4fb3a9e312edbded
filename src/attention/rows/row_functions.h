#pragma once

#include <cstdint>
#include <type_traits>

#include "attention/rows/row.h"

/// From a type's RowMap to plain functions that the core calls: one pair for each kind of row.
namespace lacuna::types {

/// One row's work as plain data, so that it may cross between files compiled for different instruction sets.
template <class S>
struct RowCall {
  S* weights;          ///< forward: scores in, weights out. backward: weights
  S* gradient;         ///< backward: d loss / d weights in, d loss / d scores out
  S* scores;           ///< backward of types that need them, else null
  const S* positions;  ///< of the keys, for types that need them, else null
  S* scratch;          ///< room for a row
  int length;          ///< at least 1
  RowContext<S> context;
  // Types with a mask only; `weights` are then, forward, the base's in and the type's out.
  S* mask = nullptr;           ///< forward: the mask's scores in, the mask out. backward: the mask
  S* base = nullptr;           ///< backward: the base's weights
  S* mask_gradient = nullptr;  ///< backward: d loss / d weights in, d loss / d (the mask's scores) out if this is the mask pass
};

template <class S>
using RowFunction = void (*)(const void* options, const RowCall<S>& call);

/// What rows of one tile do not share.
template <class S>
struct RowPlace {
  S* weights;
  int length;
  // Of RowContext:
  S position;
  const S* numbers;
  S* kept;
};

/// One row after the other: `call` with the places filled in.
template <class S>
using RowsFunction = void (*)(const void* options, const RowCall<S>& call, const RowPlace<S>* places, int count);

template <class S>
struct RowFunctions {
  RowFunction<S> forward = nullptr, backward = nullptr;
  RowsFunction<S> forward_all = nullptr;  ///< each row's bits are the same whatever rows there are
};

template <class Map, class R>
concept HasForward = requires(const Map map, R row) {
  map.forward(row);
}
|| requires(const Map map, R row, RowContext<typename R::scalar> context) {
  map.forward(row, context);
};
/// RowMap::needs_scores(), if any, says with which options: with others, the scores that it gets hold nothing.
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

/// A map that calls RowContext::found.
template <class Map>
concept KeepsNumber = requires {
  Map::keeps_number;
};

/// A map whose forward pass can be done for rows side by side: written without a branch on a row's numbers (row::select, row::search).
template <class Map>
concept GoesSideBySide = requires {
  Map::goes_side_by_side;
};

/// The map's forward pass in the form that it has.
template <class Map, Row R>
LACUNA_HD void run_forward(const Map& map, R scores, [[maybe_unused]] const RowContext<typename R::scalar>& context) {
  if constexpr (requires { map.forward(scores, context); }) {
    map.forward(scores, context);
  } else {
    map.forward(scores);
  }
}

/// Likewise its backward pass; `scores` are read by those that need them.
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

/// A type's functions on rows of kind R. A RowMap with options holds them as its only member.
template <class Map, class Options, SingleRow R>
struct RowFunctionsOf {
  using S = typename R::scalar;
  static_assert(HasForward<Map, R>, "RowMap needs forward(scores) or forward(scores, context): scores -> weights, in place");
  static_assert(HasBackward<Map, R>,
                "RowMap needs backward(weights, gradient), backward(weights, gradient, context) or backward(scores, weights, gradient, "
                "context): d loss / d weights -> d loss / d scores, in place");

  static Map map_of([[maybe_unused]] const void* options) {
    if constexpr (std::is_empty_v<Options>) {
      return Map{};
    } else {
      return Map{*static_cast<const Options*>(options)};
    }
  }

  static void forward(const void* options, const RowCall<S>& call) {
    const Map map = map_of(options);
    run_forward(map, R{call.weights, call.length, call.positions, call.scratch}, call.context);
  }

  static void backward(const void* options, const RowCall<S>& call) {
    const Map map = map_of(options);
    const R scores{call.scores, call.length, call.positions, call.scratch};
    const R weights{call.weights, call.length, call.positions, call.scratch};
    const R gradient{call.gradient, call.length, call.positions, call.scratch};
    run_backward(map, scores, weights, gradient, call.context);
  }

  static void forward_all(const void* options, const RowCall<S>& call, const RowPlace<S>* places, int count) {
    if constexpr (GoesSideBySide<Map> && requires { typename R::Moved; }) {
      const RowPlace<S>* together[R::Moved::kMostRows];
      int found = 0;
      for (int i = 0; i < count; ++i) {
        const bool is_short = places[i].length <= R::Moved::kLongest && call.context.num_numbers <= R::Moved::kMostNumbers;
        if (is_short) together[found++] = places + i;
        if (found == R::Moved::kMostRows || (found > 0 && i == count - 1)) {
          forward_side_by_side(map_of(options), call, together, found);
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
  static void forward_side_by_side(const Map& map, const RowCall<S>& call, const RowPlace<S>* const* places, int count) {
    typename R::Moved moved(places, count);
    run_forward(map, moved.rows(), moved.context(call.context));
    moved.put_back();
  }
  static void forward_at(const void* options, RowCall<S> call, const RowPlace<S>& place) {
    call.weights = place.weights;
    call.length = place.length;
    call.context.position = place.position;
    call.context.numbers = place.numbers;
    call.context.kept = place.kept;
    forward(options, call);
  }
};

/// A map that takes the weights of another type, its base, and a second row: the scores of a mask.
template <class Map, class R>
concept TakesMask = requires(const Map map, R row, RowContext<typename R::scalar> context) {
  map.forward(row, row, context);
  map.backward(row, row, row, row, row, context);
};

template <class Map, class Options, SingleRow R>
requires TakesMask<Map, R>
struct RowFunctionsOf<Map, Options, R> {
  using S = typename R::scalar;

  static void forward(const void* options, const RowCall<S>& call) {
    const Map map{*static_cast<const Options*>(options)};
    map.forward(row(call, call.weights), row(call, call.mask), call.context);
  }

  static void backward(const void* options, const RowCall<S>& call) {
    const Map map{*static_cast<const Options*>(options)};
    map.backward(row(call, call.base), row(call, call.weights), row(call, call.mask), row(call, call.gradient),
                 row(call, call.mask_gradient), call.context);
  }

  static constexpr RowFunctions<S> get() { return {&forward, &backward}; }

 private:
  static R row(const RowCall<S>& call, S* data) { return {data, call.length, nullptr, call.scratch}; }
};

}  // namespace lacuna::types
