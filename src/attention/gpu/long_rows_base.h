#pragma once

#include "attention/gpu/factors.h"
#include "attention/gpu/long_row.h"
#include "attention/gpu/long_rows_memory.h"
#include "attention/rows/dropout.h"

namespace lacuna::cuda {

/// What both kinds of blocks do: on rows of the device's memory, and on squares of kTile queries x kTile keys.
template <class Map, class T, class Block>
class LongRowsBase {
 public:
  LACUNA_DEVICE LongRowsBase(const Map& map, const KernelCall<T>& call, const Block& block, const LongSentence& sentence, int place)
      : map_(map), call_(call), block_(block), sentence_(sentence), place_(place), head_(call.schedule.heads[place]) {}

 protected:
  using Layout = LaneLayout<Block>;
  using Number = PerRow<Block>;
  using Product = Factors<T, Block>;
  static constexpr int kOwnOfTile = Layout::share(kTile), kOwnOfGroup = Layout::share(kKeyGroup);
  static constexpr int kTilesOfGroup = kKeyGroup / kTile, kSquares = kColumns / kTile;
  static constexpr int kRightStride = right_stride<T>(), kLeftStride = left_stride<T>();

  // --- rows ---

  /// The input of the row map for the queries from `first` on; `numbers` and `kept` are its.
  LACUNA_DEVICE types::RowContext<Number> context_of(int first, Number* numbers, Number* kept, bool is_recalled) const {
    types::RowContext<Number> context;
    context.training = call_.training;
    LACUNA_UNROLL
    for (int r = 0; r < Layout::kRows; ++r) context.position.of[r] = static_cast<float>(sentence_.first_position + query_of(first, r));
    context.num_numbers = call_.num_numbers;
    context.numbers = numbers;
    context.kept_number = kept;
    context.is_recomputed = is_recalled;
    return context;
  }

  /// Returns scores of products q.k, with the same bits in each kernel: so weights are 0 for the same keys.
  LACUNA_DEVICE Number scaled(Number products) const {
    return products.each([scale = call_.scale](float x) { return rounded_product(x, scale); });
  }

  /// Scores of kTile keys from `first_key` on -> their weights. log: what is written down of the rows.
  LACUNA_DEVICE void recall_weights(Number* scores, int first_key, const float* log, int stride, types::RowContext<Number> context) const {
    Number kept;
    LACUNA_UNROLL
    for (int r = 0; r < Layout::kRows; ++r) kept.of[r] = log[Layout::row(block_.lane(), r) * stride];
    context.kept_number = &kept;
    int next = 1;
    types::run_forward(map_, RecalledRow<Block>{scores, first_key, log, stride, &next, kRowResults, &block_}, context);
  }

  /// 0 in place of the numbers of keys that are not seen.
  LACUNA_DEVICE void clear_unseen(const KeyRuns<Block>& seen, int first_key, Number* numbers) const {
    LACUNA_UNROLL
    for (int i = 0; i < kOwnOfTile; ++i)
      numbers[i] = select(seen.contain(first_key + Layout::column(block_.lane(), i)), numbers[i], Number(0));
  }

  /// Multiplies weights or their gradients with their dropout factors. Four keys share a draw.
  LACUNA_DEVICE void drop(int first_query, int first_key, Number* numbers) const {
    if (call_.dropout_threshold == 0) return;
    const DropoutRule rule = {dropout_key(call_.dropout_key, head_, sentence_.sentence_id), call_.dropout_threshold};
    LACUNA_UNROLL
    for (int r = 0; r < Layout::kRows; ++r) {
      const int32_t query = sentence_.first_position + query_of(first_query, r);
      PhiloxBlock drawn = {};
      LACUNA_UNROLL
      for (int i = 0; i < kOwnOfTile; ++i) {
        const int key = first_key + Layout::column(block_.lane(), i);
        if (i % Layout::kRun == 0 || key % 4 == 0) drawn = rule.draw(query, key);
        numbers[i].of[r] *= rule.drops(drawn, key) ? 0.f : call_.dropout_scale;
      }
    }
  }

  // --- products ---

  LACUNA_DEVICE static void clear(Number* numbers, int count) {
    LACUNA_UNROLL
    for (int i = 0; i < count; ++i) numbers[i] = 0;
  }

  /// f(c) for every tile of columns between c and c + kColumns.
  template <class F>
  LACUNA_DEVICE void for_each_square(int c, F f) const {
    LACUNA_UNROLL
    for (int j = 0; j < kSquares; ++j)
      if (c + kTile * j < call_.width) f(j);
  }

  /// sums [kColumns] += left x rows [kTile, kColumns]: columns c and on of the whole.
  LACUNA_DEVICE void add_product(int c, const typename Product::Left& left, const T* rows, int stride, Number* sums) const {
    for_each_square(
        c, [&](int j) { Product::multiply_add(block_, left, Product::right(block_, rows + kTile * j, stride), sums + kOwnOfTile * j); });
  }

  // --- rows in the device's memory ---

  LACUNA_DEVICE int64_t query_row(int query) const { return sentence_.first_query + int64_t{query}; }
  LACUNA_DEVICE int64_t key_row(int key) const {
    const int32_t place = sentence_.first_key + key;
    return call_.schedule.slots != nullptr ? call_.schedule.slots[place] : place;
  }
  /// The index of a query among all queries and heads.
  LACUNA_DEVICE int64_t row_of(int query) const { return query_row(query) * call_.num_heads + head_; }

  /// Begins to copy columns c to `end` of `count` rows, 0 where at(row) is below 0 and behind the last column. Workers share them.
  template <class At>
  LACUNA_DEVICE void read_rows(const Matrix<const T>& from, int count, int c, int end, At at, T* to, int stride, int worker,
                               int workers) const {
    constexpr int kWorkersOfRow = Block::kLanes < 8 ? Block::kLanes : 8;
    const int together = call_.is_aligned ? static_cast<int>(16 / sizeof(T)) : 1;
    for (int r = worker / kWorkersOfRow; r < count; r += workers / kWorkersOfRow) {
      const int64_t row = at(r);
      const T* const first = row < 0 ? nullptr : from.data + row * from.row + head_ * from.head;
      for (int column = c + worker % kWorkersOfRow * together; column < end; column += kWorkersOfRow * together) {
        const bool is_there = first != nullptr && column < call_.d_head;
        T* const place = to + r * stride + column - c;
        if (call_.is_aligned) {
          AsyncCopies::begin_16_bytes(is_there ? first + column : nullptr, place);
        } else {
          *place = is_there ? first[column] : T(0.f);
        }
      }
    }
  }
  /// Begins to copy kTile rows of queries, with all threads.
  LACUNA_DEVICE void read_queries(const Matrix<const T>& from, int first, T* to, int stride) const {
    const auto at = [&](int r) { return first + r < sentence_.queries ? query_row(first + r) : int64_t{-1}; };
    read_rows(from, kTile, 0, call_.width, at, to, stride, thread(), threads());
  }
  LACUNA_DEVICE auto keys_from(int first) const {
    return [this, first](int r) { return first + r < sentence_.keys ? key_row(first + r) : int64_t{-1}; };
  }

  // --- where things are ---

  LACUNA_DEVICE int query_of(int first, int r) const { return first + Layout::row(block_.lane(), r); }
  LACUNA_DEVICE int groups() const { return (sentence_.keys + kKeyGroup - 1) / kKeyGroup; }
  LACUNA_DEVICE int tiles() const { return (sentence_.queries + kTile - 1) / kTile; }
  /// Where KernelCall::has_weight says it of a group of keys and of the tile's queries.
  LACUNA_DEVICE unsigned char* has_weight(int group, int tile) const {
    return call_.has_weight + int64_t{place_} * call_.schedule.num_long_blocks + sentence_.first_block + group * tiles() + tile;
  }
  LACUNA_DEVICE int thread() const { return block_.warp() * Block::kLanes + block_.lane(); }
  LACUNA_DEVICE int threads() const { return block_.warps() * Block::kLanes; }

  const Map& map_;
  const KernelCall<T>& call_;
  const Block& block_;
  const LongSentence& sentence_;
  const int place_, head_;
};

}  // namespace lacuna::cuda
