#pragma once

#include "attention/gpu/block.h"
#include "attention/gpu/fragment.h"
#include "attention/gpu/row_keys.h"
#include "attention/gpu/row_warp.h"
#include "attention/gpu/shared_memory.h"
#include "attention/rows/dropout.h"

// A block works on a tile: up to 16 queries of one sentence and head, over the keys that any of them sees. Scores come from products of
// 16 x 16 matrices and stay in shared memory; each warp then turns whole rows into weights, by the type's own row map; the weights go into
// products again. As on the CPU, nothing of the size of queries x keys reaches the device's memory: the backward pass works the weights
// out again.
//
// No sum depends on which block or warp comes first. Gradients of keys are summed by their owner: a block goes through a chunk of tiles in
// order and adds to rows of its own, and these are added in order by sum_partials.
namespace lacuna::cuda {

/// The work of one thread for the head at `place` of the schedule.
template <class Map, class T, class Block>
class Kernel {
 public:
  LACUNA_DEVICE Kernel(const Map& map, const KernelCall<T>& call, const Block& block, const SentenceTask& task, int place,
                       const SharedMemory<T>& memory)
      : map_(map), call_(call), block_(block), task_(task), place_(place), head_(call.schedule.heads[place]), memory_(memory) {}

  LACUNA_DEVICE void forward(const QueryTile& tile) {
    begin(tile);
    AsyncCopies::wait_for_all();
    block_.sync();
    dots(tile, memory_.q, call_.k, call_.scale, /*only_weighted=*/false, memory_.weights);
    block_.sync();
    for_each_row(tile, [&](int r) {
      weigh(tile, r);
      drop(tile, r, memory_.weights);
    });
    block_.sync();
    combine(tile, memory_.weights, call_.v, call_.context);
  }

  LACUNA_DEVICE void backward(const QueryTile& tile, const Chunk& chunk) {
    block_.sync();  // with the tile before
    begin(tile);
    copy_tile(tile, call_.context_gradient, memory_.context_gradient);
    AsyncCopies::wait_for_all();
    block_.sync();
    dots(tile, memory_.q, call_.k, call_.scale, /*only_weighted=*/false, memory_.weights);
    block_.sync();
    for_each_row(tile, [&](int r) { weigh(tile, r); });
    block_.sync();
    dots(tile, memory_.context_gradient, call_.v, 1, call_.sparse, memory_.gradient);
    block_.sync();
    for_each_row(tile, [&](int r) {
      drop(tile, r, memory_.gradient);
      find_gradient(tile, r);
      drop(tile, r, memory_.weights);
    });
    block_.sync();
    scatter(tile, chunk);
    combine(tile, memory_.gradient, call_.k, call_.q_gradient);
  }

 private:
  // --- rows ---

  /// Begins to read what both passes need of a tile.
  LACUNA_DEVICE void begin(const QueryTile& tile) {
    copy_tile(tile, call_.q, memory_.q);
    const int32_t* first = call_.schedule.first_segment + task_.first_segment + tile.first;
    for (int r = thread(); r < tile.rows; r += threads()) memory_.segments[r] = RowSegments(call_.schedule, first + r);
  }

  template <class F>
  LACUNA_DEVICE void for_each_row(const QueryTile& tile, F f) {
    for (int r = block_.warp(); r < tile.rows; r += block_.warps()) f(r);
  }

  LACUNA_DEVICE float* row_of(float* rows, int r) const { return rows + static_cast<int64_t>(r) * task_.stride; }
  LACUNA_DEVICE int query_of(const QueryTile& tile, int r) const { return tile.first + r; }

  /// Row r: scores -> weights before dropout, 0 at keys that it does not see.
  LACUNA_DEVICE void weigh(const QueryTile& tile, int r) {
    const RowKeys<Block> keys(call_.schedule, memory_.segments, tile, r, block_);
    float* weights = row_of(memory_.weights, r);
    float* list = keys.side_by_side(weights, memory_.list_weights);
    if (memory_.scores != nullptr) copy(tile.width, weights, row_of(memory_.scores, r));
    if (keys.count() > 0) {
      find_positions(keys);
      types::run_forward(map_, row(list, keys.count()), context_of(tile, r, nullptr));
    }
    keys.spread(list, weights);
  }

  /// Row r: d loss / d weights -> d loss / d (q.k).
  LACUNA_DEVICE void find_gradient(const QueryTile& tile, int r) {
    const RowKeys<Block> keys(call_.schedule, memory_.segments, tile, r, block_);
    float* gradient = row_of(memory_.gradient, r);
    float* list = keys.side_by_side(gradient, memory_.list_gradient);
    if (keys.count() > 0) {
      const int n = keys.count();
      const WarpRow<Block> weights = row(keys.side_by_side(row_of(memory_.weights, r), memory_.list_weights), n), of_weights = row(list, n);
      const WarpRow<Block> scores =
          call_.needs_scores ? row(keys.side_by_side(row_of(memory_.scores, r), memory_.list_scores), n) : WarpRow<Block>{};
      double number_gradients[kMaxNumbers] = {};
      find_positions(keys);
      types::run_backward(map_, scores, weights, of_weights, context_of(tile, r, number_gradients));
      of_weights.map([scale = call_.scale](float g) { return g * scale; });
      if (block_.lane() == 0) store_number_gradients(tile, r, number_gradients);
    }
    keys.spread(list, gradient);
  }

  LACUNA_DEVICE WarpRow<Block> row(float* data, int length) const { return {data, length, memory_.positions, memory_.scratch, block_}; }

  LACUNA_DEVICE types::RowContext<float> context_of(const QueryTile& tile, int r, double* number_gradients) const {
    types::RowContext<float> context;
    context.training = call_.training;
    context.position = static_cast<float>(query_position(tile, r));
    context.num_numbers = call_.num_numbers;
    context.numbers = call_.numbers + number_of(tile, r);
    context.number_gradients = number_gradients;
    return context;
  }

  LACUNA_DEVICE void store_number_gradients(const QueryTile& tile, int r, const double* gradients) const {
    LACUNA_UNROLL
    for (int i = 0; i < kMaxNumbers; ++i)
      if (i < call_.num_numbers) call_.number_gradients[number_of(tile, r) + i] = gradients[i];
  }

  LACUNA_DEVICE int32_t query_position(const QueryTile& tile, int r) const {
    return task_.first_position + query_of(tile, r) * task_.query_step;
  }

  /// The index of the first number of row r.
  LACUNA_DEVICE int64_t number_of(const QueryTile& tile, int r) const {
    return (batch_row(tile, r) * call_.num_heads + head_) * call_.num_numbers;
  }

  LACUNA_DEVICE void find_positions(const RowKeys<Block>& keys) {
    if (!call_.uses_positions) return;
    keys.for_each([&](int n, int e) { memory_.positions[n] = static_cast<float>(key_position(e)); });
    block_.sync_warp();
  }

  /// Multiplies row r with its dropout factors. Four keys share a draw, so a lane does all four.
  LACUNA_DEVICE void drop(const QueryTile& tile, int r, float* rows) {
    if (call_.dropout_threshold == 0) return;
    const DropoutRule rule = {dropout_key(call_.dropout_key, head_, task_.sentence_id), call_.dropout_threshold};
    const int32_t query = query_position(tile, r);
    float* row = row_of(rows, r) - tile.begin;
    const auto apply = [&](const PhiloxBlock& drawn, int e, int32_t position) {
      row[e] *= rule.drops(drawn, position) ? 0.f : call_.dropout_scale;
    };
    const int end = tile.begin + tile.width < task_.keys ? tile.begin + tile.width : task_.keys;
    if (task_.key_positions < 0) {  // tile.begin is a multiple of 4
      for (int first = tile.begin + 4 * block_.lane(); first < end; first += 4 * Block::kLanes) {
        const PhiloxBlock drawn = rule.draw(query, first);
        for (int e = first; e < first + 4 && e < end; ++e) apply(drawn, e, e);
      }
    } else {
      for (int e = tile.begin + block_.lane(); e < end; e += Block::kLanes) {
        const int32_t position = key_position(e);
        apply(rule.draw(query, position), e, position);
      }
    }
    block_.sync_warp();
  }

  LACUNA_DEVICE void copy(int count, const float* from, float* to) const {
    for (int i = block_.lane(); i < count; i += Block::kLanes) to[i] = from[i];
    block_.sync_warp();
  }

  // --- products ---

  /// use(e, buffer) for this warp's share of the tile's keys, kTile at a time, where wanted(e, buffer) is true. Columns c to c + kColumns
  /// of their rows then lie in right(buffer), while those of the next are on their way. Which warp has which keys does not depend on where
  /// the tile begins.
  template <class Wanted, class Use>
  LACUNA_DEVICE void for_each_keys(const QueryTile& tile, const Matrix<const T>& keys, int c, Wanted wanted, Use use) {
    const int warps = block_.warps(), step = kTile * warps;
    const int own = kTile * ((block_.warp() + warps - tile.begin / kTile % warps) % warps);
    const auto take_next = [&](int e, int buffer) {
      while (e < tile.width && !wanted(e, buffer)) e += step;
      if (e < tile.width) copy_keys(tile, keys, e, c, right(buffer));
      return e;
    };
    int buffer = 0;
    for (int e = take_next(own, buffer); e < tile.width; buffer = 1 - buffer) {
      const int next = take_next(e + step, 1 - buffer);
      if (next < tile.width) {
        AsyncCopies::wait_for_all_but_the_last();
      } else {
        AsyncCopies::wait_for_all();
      }
      block_.sync_warp();
      use(e, buffer);
      block_.sync_warp();
      e = next;
    }
  }

  /// out[r][e] = factor * rows[r] . key row e. `only_weighted`: 0 in tiles of keys without any weight.
  LACUNA_DEVICE void dots(const QueryTile& tile, const T* rows, const Matrix<const T>& keys, float factor, bool only_weighted, float* out) {
    for (int c = 0; c < call_.width; c += kColumns) {
      const auto wanted = [&](int e, int /*buffer*/) {
        if (!only_weighted || has_weight(tile, memory_.weights, e)) return true;
        for_each_element([&](int r, int j) {
          if (r < tile.rows) row_of(out, r)[e + j] = 0;
        });
        return false;
      };
      for_each_keys(tile, keys, c, wanted, [&](int e, int buffer) {
        Fragment<T, Block> sum(block_);
        for_each_square(c, [&](int j) {
          sum.template add<false, true>(rows + c + kTile * j, row_stride<T>(call_.width), right(buffer) + kTile * j, kRightStride);
        });
        sum.multiply(factor);
        put(tile, sum, e, /*adds=*/c > 0, out);
      });
    }
  }

  /// out[r][e to e + kTile] = sum, or += sum
  LACUNA_DEVICE void put(const QueryTile& tile, Fragment<T, Block>& sum, int e, bool adds, float* out) {
    if (task_.tile_rows == kTile) {
      if (adds) sum.add(out + e, task_.stride);
      sum.store(out + e, task_.stride);
      return;
    }
    sum.store(memory_.product, kTile);
    block_.sync_warp();
    for_each_element([&](int r, int j) {
      if (r < tile.rows) row_of(out, r)[e + j] = memory_.product[r * kTile + j] + (adds ? row_of(out, r)[e + j] : 0.f);
    });
  }

  /// out[query r] = sum_e weights[r][e] key row e. Each warp sums its share of the keys, and then these sums are added up in order.
  LACUNA_DEVICE void combine(const QueryTile& tile, float* weights, const Matrix<const T>& keys, const Matrix<T>& out) {
    for (int c = 0; c < call_.width; c += kColumns) {
      Fragments sums(block_);
      for_each_keys(
          tile, keys, c, [&](int e, int buffer) { return take_left(tile, weights, e, left(buffer)); },
          [&](int /*e*/, int buffer) {
            for_each_square(c, [&](int j) {
              sums.of[j].template add<false, false>(left(buffer), kLeftStride, right(buffer) + kTile * j, kRightStride);
            });
          });
      for_each_square(c, [&](int j) { sums.of[j].store(memory_.sums(block_.warp()) + kTile * j, kSumStride); });
      block_.sync();
      for (int i = thread(); i < tile.rows * kColumns; i += threads()) {
        const int r = i / kColumns, column = i % kColumns;
        if (c + column >= call_.d_head) continue;
        float sum = 0;
        for (int warp = 0; warp < block_.warps(); ++warp) sum += memory_.sums(warp)[r * kSumStride + column];
        out.data[batch_row(tile, r) * out.row + head_ * out.head + c + column] = static_cast<T>(sum);
      }
      block_.sync();
    }
  }

  /// Adds sum_r weights[r][e] rows[r] to the chunk's own row of key e, for both of its lists.
  LACUNA_DEVICE void scatter(const QueryTile& tile, const Chunk& chunk) {
    const int64_t first = static_cast<int64_t>(place_) * call_.schedule.num_partials + chunk.first_partial + tile.begin - chunk.begin;
    for (int e = kTile * block_.warp(); e < tile.width; e += kTile * block_.warps()) {
      const bool of_v = take_left(tile, memory_.weights, e, left(0)), of_k = take_left(tile, memory_.gradient, e, left(1));
      for (int c = 0; c < call_.width; c += kColumns) {
        const int64_t own = (first + e) * call_.width + c;
        if (of_v) scatter(c, left(0), memory_.context_gradient + c, call_.v_partial + own);
        if (of_k) scatter(c, left(1), memory_.q + c, call_.k_partial + own);
      }
      block_.sync_warp();
    }
  }

  /// own [kTile keys, columns c to c + kColumns] += the transposed of `weights` x rows. All that is read of `own` is on its way at once.
  LACUNA_DEVICE void scatter(int c, const T* weights, const T* rows, float* own) {
    Fragments sums(block_);
    for_each_square(c, [&](int j) { sums.of[j].add(own + kTile * j, call_.width); });
    for_each_square(
        c, [&](int j) { sums.of[j].template add<true, false>(weights, kLeftStride, rows + kTile * j, row_stride<T>(call_.width)); });
    for_each_square(c, [&](int j) { sums.of[j].store(own + kTile * j, call_.width); });
  }

  /// f(j) for every square of kTile columns between c and c + kColumns.
  template <class F>
  LACUNA_DEVICE void for_each_square(int c, F f) const {
    LACUNA_UNROLL
    for (int j = 0; j < kSquares; ++j)
      if (c + kTile * j < call_.width) f(j);
  }

  /// to [kTile, kTile] = weights [kTile, e to e + kTile], 0 beyond the tile's rows. False if all are 0.
  LACUNA_DEVICE bool take_left(const QueryTile& tile, float* weights, int e, T* to) {
    bool has_weight = false;
    for_each_element([&](int r, int j) {
      const float weight = r < tile.rows ? row_of(weights, r)[e + j] : 0.f;
      to[r * kLeftStride + j] = static_cast<T>(weight);
      has_weight = has_weight || weight != 0;
    });
    return on_any_lane(has_weight);
  }

  LACUNA_DEVICE bool has_weight(const QueryTile& tile, float* weights, int e) {
    bool has_weight = false;
    for_each_element([&](int r, int j) { has_weight = has_weight || (r < tile.rows && row_of(weights, r)[e + j] != 0); });
    return on_any_lane(has_weight);
  }

  LACUNA_DEVICE bool on_any_lane(bool holds) const {
    int lanes;
    block_.rank(holds, lanes);
    return lanes > 0;
  }

  /// Begins to copy columns c to c + kColumns of the rows of keys e to e + kTile, 0 beyond either's end.
  LACUNA_DEVICE void copy_keys(const QueryTile& tile, const Matrix<const T>& keys, int e, int c, T* to) {
    const auto row = [&](int i) -> const T* {
      const int key = tile.begin + e + i;
      return key < task_.keys ? keys.data + head_ * keys.head + key_row(key) * keys.row : nullptr;
    };
    copy_rows(row, c, to, kRightStride, block_.lane(), Block::kLanes);
    AsyncCopies::end_group();
  }

  /// Begins to copy the tile's rows to `to`, 0 beyond.
  LACUNA_DEVICE void copy_tile(const QueryTile& tile, const Matrix<const T>& rows, T* to) {
    const auto row = [&](int r) -> const T* {
      return r < tile.rows ? rows.data + batch_row(tile, r) * rows.row + head_ * rows.head : nullptr;
    };
    for (int c = 0; c < call_.width; c += kColumns) copy_rows(row, c, to + c, row_stride<T>(call_.width), thread(), threads());
    AsyncCopies::end_group();
  }

  /// Columns c to c + kColumns (or to the width) of kTile rows, shared out among the workers; 0 for rows that are null.
  template <class F>
  LACUNA_DEVICE void copy_rows(F row, int c, T* to, int stride, int worker, int workers) {
    const int together = call_.is_aligned ? kTogether : 1;
    for (int i = worker * together; i < kTile * kColumns; i += workers * together) {
      const int r = i / kColumns, column = i % kColumns;
      if (c + column >= call_.width) continue;
      const T* const first = c + column < call_.d_head ? row(r) : nullptr;
      const T* const from = first != nullptr ? first + c + column : nullptr;
      if (call_.is_aligned) {
        AsyncCopies::begin_16_bytes(from, to + r * stride + column);
      } else {
        to[r * stride + column] = from != nullptr ? *from : T(0.f);
      }
    }
  }

  /// f(row, column) for every element of a square, shared out among the lanes.
  template <class F>
  LACUNA_DEVICE void for_each_element(F f) {
    for (int i = block_.lane(); i < kTile * kTile; i += Block::kLanes) f(i / kTile, i % kTile);
    block_.sync_warp();
  }

  // --- where things are ---

  LACUNA_DEVICE int64_t batch_row(const QueryTile& tile, int r) const {
    return task_.first_query + static_cast<int64_t>(query_of(tile, r)) * task_.query_step;
  }
  LACUNA_DEVICE int32_t key_position(int e) const {
    return task_.key_positions < 0 ? e : call_.schedule.key_positions[task_.key_positions + e];
  }
  LACUNA_DEVICE int64_t key_row(int e) const {
    const int32_t place = task_.first_key + key_position(e);
    return call_.schedule.slots != nullptr ? call_.schedule.slots[place] : place;
  }

  static constexpr int kTogether = 16 / sizeof(T);  // elements of 16 bytes
  static constexpr int kSquares = kColumns / kTile;
  static constexpr int kLeftStride = left_stride<T>(), kRightStride = right_stride<T>();

  /// Sums for kColumns columns.
  struct Fragments {
    Fragment<T, Block> of[kSquares];
    LACUNA_DEVICE explicit Fragments(const Block& block)
        : of{Fragment<T, Block>(block), Fragment<T, Block>(block), Fragment<T, Block>(block), Fragment<T, Block>(block)} {}
  };

  LACUNA_DEVICE int thread() const { return block_.warp() * Block::kLanes + block_.lane(); }
  LACUNA_DEVICE int threads() const { return block_.warps() * Block::kLanes; }
  LACUNA_DEVICE T* left(int buffer) const { return memory_.left + buffer * kTile * kLeftStride; }
  LACUNA_DEVICE T* right(int buffer) const { return memory_.right + buffer * kTile * kRightStride; }

  const Map& map_;
  const KernelCall<T>& call_;
  const Block& block_;
  const SentenceTask& task_;
  const int place_, head_;
  const SharedMemory<T> memory_;
};

}  // namespace lacuna::cuda
