#pragma once

#include "attention/gpu/factors.h"
#include "attention/gpu/register_row.h"
#include "attention/gpu/short_rows_memory.h"
#include "attention/rows/dropout.h"

// Sentences of few keys, as nearly all are in translation. A block works on one sentence and head, and reads its rows of k and v once. A
// warp takes 16 queries at a time: their scores come from products on tensor cores and stay in the registers that these leave them in.
// There they are 16 rows side by side, which the type's own row map turns into weights; and there they are a factor of the product with v.
//
// The backward pass has two phases. In the first, a warp owns queries: it works the weights out again, finds the gradients of their scores,
// and leaves both in shared memory. In the second, a warp owns keys, and sums their gradients over all queries, in order. So no sum depends
// on which block or warp comes first, or on what else is in the batch.
namespace lacuna::cuda {

/// True if there are kernels for T's in such a block: of bf16 on a whole warp, and emulated, of float on one lane.
template <class T, class Block>
inline constexpr bool kHasShortRows = Block::kLanes == (std::is_same_v<T, Bf16> ? 32 : 1);

/// The work of one thread on a sentence of at most kWidth keys, for the head at `place` of the schedule.
template <class Map, class T, class Block, int kWidth>
class ShortRows {
 public:
  LACUNA_DEVICE ShortRows(const Map& map, const KernelCall<T>& call, const Block& block, const ShortSentence& sentence, int place,
                          const ShortRowsMemory<T>& memory)
      : map_(map),
        call_(call),
        block_(block),
        sentence_(sentence),
        queries_(sentence.queries),
        keys_(sentence.keys),
        head_(call.schedule.heads[place]),
        memory_(memory) {}

  LACUNA_DEVICE void forward() const {
    read_keys();
    AsyncCopies::wait_for_all();
    block_.sync();
    for (int first = kTile * block_.warp(); first < queries_; first += kTile * block_.warps()) {
      read_rows(call_.q, tile_of_queries(first), memory_.rows(), block_.lane(), Block::kLanes);
      AsyncCopies::wait_for_all();
      block_.sync_warp();
      const VisibleKeys visible = visible_to(first);
      Scores weights;
      dots(memory_.rows(), memory_.keys(), call_.scale, weights);
      weigh(first, visible, weights);
      drop(kept_after_dropout(first), weights);
      block_.sync_warp();  // all have read the queries, whose place their context takes
      combine(weights, memory_.values(), memory_.rows());
      write_rows(memory_.rows(), call_.context, tile_of_queries(first));
    }
  }

  LACUNA_DEVICE void backward() const {
    read_keys();
    read_rows(call_.q, all_queries(), memory_.queries(), thread(), threads());
    read_rows(call_.context_gradient, all_queries(), memory_.context_gradient(), thread(), threads());
    AsyncCopies::wait_for_all();
    block_.sync();
    for (int first = kTile * block_.warp(); first < queries_; first += kTile * block_.warps()) find_gradients(first);
    block_.sync();  // nobody reads k and v any more: their gradients take their places
    for (int first = kTile * block_.warp(); first < keys_; first += kTile * block_.warps()) {
      T *const of_values = memory_.values() + first * memory_.stride, *const of_keys = memory_.keys() + first * memory_.stride;
      collect(memory_.weights() + first, memory_.context_gradient(), of_values);
      collect(memory_.score_gradient() + first, memory_.queries(), of_keys);
      write_rows(of_values, call_.v_gradient, tile_of_keys(first));
      write_rows(of_keys, call_.k_gradient, tile_of_keys(first));
    }
  }

 private:
  using Layout = LaneLayout<Block>;
  using Number = PerRow<Block>;
  using Elements = ElementSet<Block, kWidth>;
  using Product = Factors<T, Block>;
  static constexpr int kOwn = Layout::share(kWidth), kOwnOfTile = Layout::share(kTile);
  static constexpr int kTiles = kWidth / kTile, kSquares = kColumns / kTile;

  /// A lane's part of kTile rows of scores, weights or gradients.
  struct Scores {
    Number of[kOwn];
  };
  /// The keys that kTile queries see. In the place of none stands the first, with score 0: a row map wants one at least.
  struct VisibleKeys {
    Elements keys;
    TruthPerRow<Block> are_none;
  };

  // --- rows ---

  /// Scores -> weights before dropout, 0 at keys that are not seen.
  LACUNA_DEVICE void weigh(int first, const VisibleKeys& visible, Scores& scores) const {
    scores.of[0] = select(visible.are_none, Number(0), scores.of[0]);
    Number numbers[kMaxNumbers];
    types::run_forward(map_, row(scores, visible), context_of(first, numbers, nullptr));
    clear_unseen(visible, scores);
  }

  /// Finds the gradients of the queries from `first` on, and what the gradients of keys need of them.
  LACUNA_DEVICE void find_gradients(int first) const {
    const VisibleKeys visible = visible_to(first);
    Scores weights, gradient;
    dots(memory_.queries() + first * memory_.stride, memory_.keys(), call_.scale, weights);
    weigh(first, visible, weights);
    const Elements kept = kept_after_dropout(first);
    {
      Scores dropped = weights;
      drop(kept, dropped);
      store(dropped, memory_.weights() + first * memory_.score_stride);
    }
    dots(memory_.context_gradient() + first * memory_.stride, memory_.values(), 1, gradient);
    drop(kept, gradient);
    Number numbers[kMaxNumbers], number_gradients[kMaxNumbers] = {};
    types::run_backward(map_, row(weights, visible), row(weights, visible), row(gradient, visible),
                        context_of(first, numbers, number_gradients));
    store_number_gradients(first, visible, number_gradients);
    row(gradient, visible).map([scale = call_.scale](Number g) { return g * Number(scale); });
    clear_unseen(visible, gradient);
    store(gradient, memory_.score_gradient() + first * memory_.score_stride);
    combine(gradient, memory_.keys(), memory_.rows());
    write_rows(memory_.rows(), call_.q_gradient, tile_of_queries(first));
  }

  LACUNA_DEVICE RegisterRow<Block, kWidth> row(Scores& scores, const VisibleKeys& visible) const {
    return {scores.of, &visible.keys, &block_};
  }

  LACUNA_DEVICE types::RowContext<Number> context_of(int first, Number* numbers, Number* number_gradients) const {
    types::RowContext<Number> context;
    context.training = call_.training;
    LACUNA_UNROLL
    for (int r = 0; r < Layout::kRows; ++r) {
      const int query = query_of(first, r), real = query < queries_ ? query : 0;
      context.position.of[r] = static_cast<float>(sentence_.first_position + query);
      LACUNA_UNROLL
      for (int i = 0; i < kMaxNumbers; ++i) numbers[i].of[r] = i < call_.num_numbers ? call_.numbers[number_of(real) + i] : 0.f;
    }
    context.num_numbers = call_.num_numbers;
    context.numbers = numbers;
    context.number_gradients = number_gradients;
    return context;
  }

  LACUNA_DEVICE void store_number_gradients(int first, const VisibleKeys& visible, const Number* gradients) const {
    if (block_.lane() % Layout::kSharers != 0) return;
    LACUNA_UNROLL
    for (int r = 0; r < Layout::kRows; ++r) {
      if (query_of(first, r) >= queries_ || visible.are_none.of[r]) continue;
      LACUNA_UNROLL
      for (int i = 0; i < kMaxNumbers; ++i)
        if (i < call_.num_numbers) call_.number_gradients[number_of(query_of(first, r)) + i] = static_cast<double>(gradients[i].of[r]);
    }
  }

  /// Returns the keys that the queries from `first` on see; none behind the last query.
  LACUNA_DEVICE VisibleKeys visible_to(int first) const {
    VisibleKeys visible;
    LACUNA_UNROLL
    for (int r = 0; r < Layout::kRows; ++r) {
      const int query = query_of(first, r);
      const int32_t* const entry = call_.schedule.first_segment + sentence_.first_segment + query;
      const int begin = query < queries_ ? entry[0] : 0, end = query < queries_ ? entry[1] : 0;
      for (int s = begin; s < end; ++s) {
        const KeySegment segment = call_.schedule.segments[s];
        const int last = segment.begin + (segment.count - 1) * segment.stride;
        visible.keys.add(block_.lane(), r, [&](int key) {
          return key >= segment.begin && key <= last && (segment.stride == 1 || (key - segment.begin) % segment.stride == 0);
        });
      }
    }
    LACUNA_UNROLL
    for (int r = 0; r < Layout::kRows; ++r) {
      visible.are_none.of[r] = block_.max_of_row(visible.keys.is_empty(r) ? 0.f : 1.f) == 0;
      if (visible.are_none.of[r]) visible.keys.add(block_.lane(), r, [](int key) { return key == 0; });
    }
    return visible;
  }

  LACUNA_DEVICE void clear_unseen(const VisibleKeys& visible, Scores& scores) const {
    LACUNA_UNROLL
    for (int i = 0; i < kOwn; ++i) scores.of[i] = select(visible.are_none, Number(0), select(visible.keys.at(i), scores.of[i], Number(0)));
  }

  /// Returns the weights that dropout keeps. Four keys share a draw.
  LACUNA_DEVICE Elements kept_after_dropout(int first) const {
    Elements kept;
    if (call_.dropout_threshold == 0) return kept;
    const DropoutRule rule = {dropout_key(call_.dropout_key, head_, sentence_.sentence_id), call_.dropout_threshold};
    LACUNA_UNROLL
    for (int r = 0; r < Layout::kRows; ++r) {
      const int32_t query = sentence_.first_position + query_of(first, r);
      PhiloxBlock drawn = {};
      int drawn_for = -1;
      kept.add(block_.lane(), r, [&](int key) {
        if (key / 4 != drawn_for) {
          drawn_for = key / 4;
          drawn = rule.draw(query, key);
        }
        return !rule.drops(drawn, key);
      });
    }
    return kept;
  }

  /// Multiplies each element with its dropout factor.
  LACUNA_DEVICE void drop(const Elements& kept, Scores& scores) const {
    if (call_.dropout_threshold == 0) return;
    LACUNA_UNROLL
    for (int i = 0; i < kOwn; ++i) scores.of[i] = scores.of[i] * select(kept.at(i), Number(call_.dropout_scale), Number(0));
  }

  // --- products ---

  /// scores = factor * rows [kTile, width] x the transposed of `keys`
  LACUNA_DEVICE void dots(const T* rows, const T* keys, float factor, Scores& scores) const {
    LACUNA_UNROLL
    for (int i = 0; i < kOwn; ++i) scores.of[i] = 0;
    for (int c = 0; c < call_.width; c += kTile) {
      const auto left = Product::left(block_, rows + c, memory_.stride);
      for_each_key_tile([&](int j) {
        const auto right = Product::right_transposed(block_, keys + kTile * j * memory_.stride + c, memory_.stride);
        Product::multiply_add(block_, left, right, scores.of + kOwnOfTile * j);
      });
    }
    LACUNA_UNROLL
    for (int i = 0; i < kOwn; ++i) scores.of[i] = scores.of[i] * Number(factor);
  }

  /// to [kTile, width] = weights x rows [keys, width]
  LACUNA_DEVICE void combine(const Scores& weights, const T* rows, T* to) const {
    for (int c = 0; c < call_.width; c += kColumns) {
      Sums sums;
      for_each_key_tile(
          [&](int j) { add_product(c, Product::left_of(block_, weights.of + kOwnOfTile * j), rows + kTile * j * memory_.stride, sums); });
      store(c, sums, to);
    }
  }

  /// to [kTile keys, width] = the transposed of scores [queries, kTile keys] x rows [queries, width]
  LACUNA_DEVICE void collect(const T* scores, const T* rows, T* to) const {
    for (int c = 0; c < call_.width; c += kColumns) {
      Sums sums;
      for (int i = 0; i < queries_; i += kTile)
        add_product(c, Product::left_transposed(block_, scores + i * memory_.score_stride, memory_.score_stride), rows + i * memory_.stride,
                    sums);
      store(c, sums, to);
    }
  }

  /// Sums of kTile rows for kColumns columns.
  struct Sums {
    Number of[kSquares * kOwnOfTile] = {};
  };

  /// sums += left x rows [kTile, columns c to c + kColumns]
  LACUNA_DEVICE void add_product(int c, const typename Product::Left& left, const T* rows, Sums& sums) const {
    for_each_square(c, [&](int j) {
      Product::multiply_add(block_, left, Product::right(block_, rows + c + kTile * j, memory_.stride), sums.of + kOwnOfTile * j);
    });
  }
  LACUNA_DEVICE void store(int c, const Sums& sums, T* to) const {
    for_each_square(
        c, [&](int j) { Product::store(block_, Product::left_of(block_, sums.of + kOwnOfTile * j), to + c + kTile * j, memory_.stride); });
    block_.sync_warp();  // other lanes will read
  }
  LACUNA_DEVICE void store(const Scores& scores, T* to) const {
    for_each_key_tile(
        [&](int j) { Product::store(block_, Product::left_of(block_, scores.of + kOwnOfTile * j), to + kTile * j, memory_.score_stride); });
  }

  /// f(j) for every tile of keys that the sentence has.
  template <class F>
  LACUNA_DEVICE void for_each_key_tile(F f) const {
    LACUNA_UNROLL
    for (int j = 0; j < kTiles; ++j)
      if (kTile * j < keys_) f(j);
  }
  /// f(j) for every square of kTile columns between c and c + kColumns.
  template <class F>
  LACUNA_DEVICE void for_each_square(int c, F f) const {
    LACUNA_UNROLL
    for (int j = 0; j < kSquares; ++j)
      if (c + kTile * j < call_.width) f(j);
  }

  // --- rows in the device's memory ---

  /// `count` rows of a matrix, one after the other from `first` on, or where `slots` name them.
  struct Rows {
    int64_t first;
    int count;
    const int32_t* slots;
    LACUNA_DEVICE int64_t at(int i) const { return slots != nullptr ? slots[first + i] : first + i; }
  };
  LACUNA_DEVICE Rows all_queries() const { return {sentence_.first_query, queries_, nullptr}; }
  LACUNA_DEVICE Rows tile_of_queries(int first) const { return {sentence_.first_query + first, tile_rows(queries_ - first), nullptr}; }
  LACUNA_DEVICE Rows all_keys() const { return {sentence_.first_key, keys_, call_.schedule.slots}; }
  LACUNA_DEVICE Rows tile_of_keys(int first) const { return {sentence_.first_key + first, tile_rows(keys_ - first), call_.schedule.slots}; }
  LACUNA_DEVICE static int tile_rows(int left) { return left < kTile ? left : kTile; }

  LACUNA_DEVICE void read_keys() const {
    read_rows(call_.k, all_keys(), memory_.keys(), thread(), threads());
    read_rows(call_.v, all_keys(), memory_.values(), thread(), threads());
  }

  /// Begins to copy rows to shared memory, 0 behind the last up to a whole tile. Workers share them.
  LACUNA_DEVICE void read_rows(const Matrix<const T>& from, const Rows& rows, T* to, int worker, int workers) const {
    for_each_piece(memory_.whole(rows.count), worker, workers, [&](int r, int c) {
      const bool is_there = r < rows.count && c < call_.d_head;
      const T* const piece = is_there ? from.data + rows.at(r) * from.row + head_ * from.head + c : nullptr;
      T* const place = to + r * memory_.stride + c;
      if (call_.is_aligned) {
        AsyncCopies::begin_16_bytes(piece, place);
      } else {
        *place = is_there ? *piece : T(0.f);
      }
    });
    AsyncCopies::end_group();
  }

  /// Copies rows that the warp has stored in shared memory.
  LACUNA_DEVICE void write_rows(const T* from, const Matrix<T>& to, const Rows& rows) const {
    for_each_piece(rows.count, block_.lane(), Block::kLanes, [&](int r, int c) {
      if (c >= call_.d_head) return;
      const T* const piece = from + r * memory_.stride + c;
      T* const place = to.data + rows.at(r) * to.row + head_ * to.head + c;
      if (call_.is_aligned) {
        AsyncCopies::write_16_bytes(piece, place);
      } else {
        *place = *piece;
      }
    });
    block_.sync_warp();
  }

  /// f(row, column) for every piece of so many rows that is copied at once, shared out among workers.
  template <class F>
  LACUNA_DEVICE void for_each_piece(int rows, int worker, int workers, F f) const {
    constexpr int kWorkersOfRow = Block::kLanes < 8 ? Block::kLanes : 8;
    const int together = call_.is_aligned ? static_cast<int>(16 / sizeof(T)) : 1;
    for (int r = worker / kWorkersOfRow; r < rows; r += workers / kWorkersOfRow)
      for (int c = worker % kWorkersOfRow * together; c < call_.width; c += kWorkersOfRow * together) f(r, c);
  }

  // --- where things are ---

  LACUNA_DEVICE int query_of(int first, int r) const { return first + Layout::row(block_.lane(), r); }
  /// The index of the first number of a query.
  LACUNA_DEVICE int64_t number_of(int query) const {
    return ((sentence_.first_query + int64_t{query}) * call_.num_heads + head_) * call_.num_numbers;
  }
  LACUNA_DEVICE int thread() const { return block_.warp() * Block::kLanes + block_.lane(); }
  LACUNA_DEVICE int threads() const { return block_.warps() * Block::kLanes; }

  const Map& map_;
  const KernelCall<T>& call_;
  const Block& block_;
  const ShortSentence& sentence_;  // not a copy: what is used once in a tile would take registers all the time
  const int queries_, keys_, head_;
  const ShortRowsMemory<T> memory_;
};

}  // namespace lacuna::cuda
