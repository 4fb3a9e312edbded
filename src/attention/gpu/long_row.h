#pragma once

#include <concepts>
#include <limits>
#include <utility>

#include "attention/gpu/per_row.h"

// The rows of kTile queries over many keys, as a type's row map sees them. The warps of a block share the keys, a group at a time in turn,
// and every lane has the elements that tensor cores leave it (lane_layout.h) in memory of its own.
namespace lacuna::cuda {

/// The keys that each of a lane's rows sees: a run.
template <class Block>
struct KeyRuns {
  static constexpr int kRows = LaneLayout<Block>::kRows;
  int begin[kRows], end[kRows];

  LACUNA_HD TruthPerRow<Block> contain(int key) const {
    TruthPerRow<Block> result;
    LACUNA_UNROLL
    for (int r = 0; r < kRows; ++r) result.of[r] = begin[r] <= key && key < end[r];
    return result;
  }
  LACUNA_HD TruthPerRow<Block> are_empty() const {
    TruthPerRow<Block> result;
    LACUNA_UNROLL
    for (int r = 0; r < kRows; ++r) result.of[r] = begin[r] >= end[r];
    return result;
  }
};

/// Writes down, row by row, the results of a row map's passes over its rows, in order: with them the map can be run again on any part of
/// the rows (RecalledRow). Those that it needs to find the number that it keeps are left out.
struct ResultLog {
  static constexpr int kStride = 2 * kRowResults;  ///< of a row: of its weights, the kept number first; of its gradients
  float* to;                                       ///< [kTile, kStride] in shared memory
  int next, end;                                   ///< later ones are left out: they have no part in what the map makes of its elements
  bool is_searching = false;
};

/// The elements of a lane, in memory: element i of the lane's n-th group. Those that the lanes of a warp read at once lie side by side.
template <class Block>
struct LaneElements {
  using Number = PerRow<Block>;
  static constexpr int kOwnOfGroup = LaneLayout<Block>::share(kKeyGroup);
  float* first;  ///< the lane's

  LACUNA_HD Number get(int n, int i) const {
    Number number;
    LACUNA_UNROLL
    for (int r = 0; r < Number::kRows; ++r) number.of[r] = *place(n, i, r);
    return number;
  }
  LACUNA_HD void set(int n, int i, Number number) const {
    LACUNA_UNROLL
    for (int r = 0; r < Number::kRows; ++r) *place(n, i, r) = number.of[r];
  }
  /// Returns the place of an element of the row r among the rows of a lane.
  LACUNA_HD float* place(int n, int i, int r) const { return first + ((n * kOwnOfGroup + i) * Number::kRows + r) * Block::kLanes; }
};

/// The rows (attention/rows/row.h) of kTile queries, all of them at once. A row's bits do not depend on the others. All threads of the
/// block call every function; what is packed has sums and a maximum alone.
template <class Block>
struct LongRow {
  using scalar = PerRow<Block>;
  static constexpr float tolerance = 2e-7f;

  LaneElements<Block> elements;
  int first_group, num_groups;  ///< the warp's: so many, each block.warps() behind the one before
  KeyRuns<Block> seen;          ///< at least one key in each row
  float* joined;                ///< [warps, kMostRowSums, kTile] in shared memory
  float* scratch;               ///< the lane's, for as many elements as it has; null = there is no room
  ResultLog* log;
  const Block* block;
  bool is_packed = false;  ///< in place of the keys, `seen` holds how many elements each row of the lane has

  LACUNA_HD int size() const { return kKeyGroup * num_groups * block->warps(); }
  /// Returns f(number of the row's keys) for each row.
  template <class F>
  LACUNA_HD scalar of_sizes(F f) const {
    scalar sizes;
    LACUNA_UNROLL
    for (int r = 0; r < scalar::kRows; ++r) sizes.of[r] = static_cast<float>(f(seen.end[r] - seen.begin[r]));
    write_down(sizes);
    return sizes;
  }
  LACUNA_HD scalar max() const {
    return max([](scalar x) { return x; });
  }
  template <class F>
  LACUNA_HD scalar max(F f) const {
    const scalar lowest = -std::numeric_limits<float>::infinity();
    scalar top[] = {lowest};
    for_each([&](int n, int i) {
      const scalar x = select(seen.contain(key(n, i)), f(elements.get(n, i)), lowest);
      top[0] = select(x > top[0], x, top[0]);
    });
    top[0] = top[0].each([this](float x) { return block->max_of_row(x); });
    join(top, [](float a, float b) { return a > b ? a : b; });
    write_down(top[0]);
    return top[0];
  }
  template <class F>
  LACUNA_HD scalar sum(F f) const {
    scalar total;
    sum_terms([&](int n, int i, scalar& term) { term = f(elements.get(n, i)); }, std::index_sequence<0>(), total);
    return total;
  }
  template <class F>
  LACUNA_HD scalar sum(LongRow other, F f) const {
    scalar total;
    sum_terms([&](int n, int i, scalar& term) { term = f(elements.get(n, i), other.elements.get(n, i)); }, std::index_sequence<0>(), total);
    return total;
  }
  template <class F>
  LACUNA_HD scalar sum_indexed(F f) const {
    scalar total;
    sum_terms([&](int n, int i, scalar& term) { term = f(elements.get(n, i), scalar(key(n, i))); }, std::index_sequence<0>(), total);
    return total;
  }
  template <class F, std::same_as<scalar>... Totals>
  LACUNA_HD void sums(F f, Totals&... totals) const {
    sum_terms([&](int n, int i, auto&... term) { f(elements.get(n, i), term...); }, std::make_index_sequence<sizeof...(Totals)>(),
              totals...);
  }
  template <class F, std::same_as<scalar>... Totals>
  LACUNA_HD void sums(LongRow other, F f, Totals&... totals) const {
    sum_terms([&](int n, int i, auto&... term) { f(elements.get(n, i), other.elements.get(n, i), term...); },
              std::make_index_sequence<sizeof...(Totals)>(), totals...);
  }
  template <class F>
  LACUNA_HD void map(F f) const {
    for_each([&](int n, int i) { elements.set(n, i, f(elements.get(n, i))); });
  }
  template <class F>
  LACUNA_HD void map(LongRow other, F f) const {
    for_each([&](int n, int i) { elements.set(n, i, f(elements.get(n, i), other.elements.get(n, i))); });
  }
  template <class F>
  LACUNA_HD scalar map_and_sum(F f) const {
    scalar total;
    sum_terms([&](int n, int i, scalar& term) { elements.set(n, i, term = f(elements.get(n, i))); }, std::index_sequence<0>(), total);
    return total;
  }
  template <class F>
  LACUNA_HD void map_indexed(F f) const {
    for_each([&](int n, int i) { elements.set(n, i, f(elements.get(n, i), scalar(key(n, i)))); });
  }

  /// Returns the elements above `bound`, at least one in each row: each lane packs its own.
  LACUNA_HD LongRow above(scalar bound) const {
    if (scratch == nullptr) return *this;
    LongRow packed = *this;
    packed.elements.first = scratch;
    packed.is_packed = true;
    packed.seen = {};
    packed.num_groups = 0;
    for_each([&](int n, int i) {
      const scalar x = elements.get(n, i);
      const TruthPerRow<Block> counts = seen.contain(key(n, i));
      LACUNA_UNROLL
      for (int r = 0; r < Layout::kRows; ++r) {
        if (!counts.of[r] || x.of[r] <= bound.of[r]) continue;  // NaN stays
        const int last = packed.seen.end[r]++;
        *packed.elements.place(last / kOwn, last % kOwn, r) = x.of[r];
        packed.num_groups = last / kOwn < packed.num_groups ? packed.num_groups : last / kOwn + 1;
      }
    });
    return packed;
  }

 private:
  using Layout = LaneLayout<Block>;
  static constexpr int kOwn = LaneElements<Block>::kOwnOfGroup;

  /// The key of an element; of a packed row, its place.
  LACUNA_HD int key(int n, int i) const { return is_packed ? kOwn * n + i : key_of(n, i); }
  LACUNA_HD int key_of(int n, int i) const { return kKeyGroup * (first_group + n * block->warps()) + Layout::column(block->lane(), i); }

  /// f(n, i) for every element.
  template <class F>
  LACUNA_HD void for_each(F f) const {
    for (int n = 0; n < num_groups; ++n)
      for (int i = 0; i < kOwn; ++i) f(n, i);
  }

  /// Sums the terms that f(n, i, terms...) sets, in parts of parts: a single chain of sums would lose precision.
  template <class F, size_t... I, class... Totals>
  LACUNA_HD void sum_terms(F f, std::index_sequence<I...>, Totals&... totals) const {
    static_assert(sizeof...(I) <= kMostRowSums);
    constexpr int kGroupsOfPart = 16;
    scalar total[] = {((void)I, scalar(0))...}, part[] = {((void)I, scalar(0))...};
    for (int n = 0; n < num_groups; ++n) {
      scalar of_group[] = {((void)I, scalar(0))...}, term[sizeof...(I)];
      for (int i = 0; i < kOwn; ++i) {
        f(n, i, term[I]...);
        const TruthPerRow<Block> counts = seen.contain(key(n, i));
        ((of_group[I] += select(counts, term[I], scalar(0))), ...);
      }
      ((part[I] += of_group[I]), ...);
      if (n % kGroupsOfPart < kGroupsOfPart - 1 && n + 1 < num_groups) continue;
      ((total[I] += part[I]), ...);
      ((part[I] = scalar(0)), ...);
    }
    ((total[I] = total[I].each([this](float x) { return block->sum_of_row(x); })), ...);
    join(total, [](float a, float b) { return a + b; });
    ((totals = total[I], write_down(totals)), ...);
  }

  /// Puts together what the warps have found, in order: every lane gets the same bits.
  template <size_t kCount, class F>
  LACUNA_HD void join(scalar (&found)[kCount], F both) const {
    if (block->warps() == 1) return;
    const auto place = [&](int warp, size_t i, int r) -> float& {
      return joined[(warp * kMostRowSums + static_cast<int>(i)) * kTile + Layout::row(block->lane(), r)];
    };
    if (block->lane() % Layout::kSharers == 0) {
      LACUNA_UNROLL
      for (size_t i = 0; i < kCount; ++i) {
        LACUNA_UNROLL
        for (int r = 0; r < Layout::kRows; ++r) place(block->warp(), i, r) = found[i].of[r];
      }
    }
    block->sync();
    LACUNA_UNROLL
    for (size_t i = 0; i < kCount; ++i) {
      LACUNA_UNROLL
      for (int r = 0; r < Layout::kRows; ++r) {
        float x = place(0, i, r);
        for (int warp = 1; warp < block->warps(); ++warp) x = both(x, place(warp, i, r));
        found[i].of[r] = x;
      }
    }
    block->sync();  // before anyone writes there again
  }

  LACUNA_HD void write_down(const scalar& result) const {
    if (log->is_searching || log->next >= log->end) return;
    if (block->warp() == 0 && block->lane() % Layout::kSharers == 0) {
      LACUNA_UNROLL
      for (int r = 0; r < Layout::kRows; ++r) log->to[Layout::row(block->lane(), r) * ResultLog::kStride + log->next] = result.of[r];
    }
    ++log->next;
  }
};

/// kTile keys of rows whose passes have been made, and written down: what a row map makes of these elements. Passes return what is written
/// down, in order.
template <class Block>
struct RecalledRow {
  using scalar = PerRow<Block>;
  static constexpr float tolerance = 2e-7f;

  scalar* data;      ///< the lane's columns
  int first_key;     ///< of the first column
  const float* log;  ///< row r's begins at log + r * stride
  int stride;
  int* next;  ///< of the results
  int end;    ///< those behind have no part in what the map makes of its elements
  const Block* block;

  LACUNA_HD int size() const { return kTile; }
  template <class F>
  LACUNA_HD scalar of_sizes(F /*f*/) const {
    return recalled();
  }
  LACUNA_HD scalar max() const { return recalled(); }
  template <class F>
  LACUNA_HD scalar max(F /*f*/) const {
    return recalled();
  }
  template <class F>
  LACUNA_HD scalar sum(F /*f*/) const {
    return recalled();
  }
  template <class F>
  LACUNA_HD scalar sum(RecalledRow /*other*/, F /*f*/) const {
    return recalled();
  }
  template <class F>
  LACUNA_HD scalar sum_indexed(F /*f*/) const {
    return recalled();
  }
  template <class F, std::same_as<scalar>... Totals>
  LACUNA_HD void sums(F /*f*/, Totals&... totals) const {
    ((totals = recalled()), ...);
  }
  template <class F, std::same_as<scalar>... Totals>
  LACUNA_HD void sums(RecalledRow /*other*/, F /*f*/, Totals&... totals) const {
    ((totals = recalled()), ...);
  }
  template <class F>
  LACUNA_HD void map(F f) const {
    LACUNA_UNROLL
    for (int i = 0; i < kOwn; ++i) data[i] = f(data[i]);
  }
  template <class F>
  LACUNA_HD void map(RecalledRow other, F f) const {
    LACUNA_UNROLL
    for (int i = 0; i < kOwn; ++i) data[i] = f(data[i], other.data[i]);
  }
  template <class F>
  LACUNA_HD scalar map_and_sum(F f) const {
    map(f);
    return recalled();
  }
  template <class F>
  LACUNA_HD void map_indexed(F f) const {
    LACUNA_UNROLL
    for (int i = 0; i < kOwn; ++i) data[i] = f(data[i], scalar(first_key + Layout::column(block->lane(), i)));
  }

 private:
  using Layout = LaneLayout<Block>;
  static constexpr int kOwn = Layout::share(kTile);

  LACUNA_HD scalar recalled() const {
    const int i = (*next)++;
    scalar result;
    LACUNA_UNROLL
    for (int r = 0; r < Layout::kRows; ++r) result.of[r] = i < end ? log[Layout::row(block->lane(), r) * stride + i] : 0.f;
    return result;
  }
};

}  // namespace lacuna::cuda
