#pragma once

#include "attention/cuda/fragment.h"
#include "attention/cuda/memory.h"
#include "attention/cuda/row_keys.h"
#include "attention/cuda/row_warp.h"
#include "attention/dropout_rule.h"

#ifdef __CUDACC__
#define LACUNA_DEVICE __device__ inline
#else
#define LACUNA_DEVICE inline
#endif

// A block works on a tile: up to 16 queries of one sentence and head, over the keys that any of them sees. Scores come from products of
// 16 x 16 matrices and stay in shared memory; each warp then turns whole rows into weights, by the type's own row map; the weights go into
// products again. As on the CPU, nothing of the size of queries x keys reaches the device's memory: the backward pass works the weights
// out again.
//
// No sum depends on which block or warp comes first. Gradients of keys are summed by their owner: a block goes through a chunk of tiles in
// order and adds to rows of its own, and these are added in order by sum_partials.
namespace lacuna::cuda {

/// What one thread does for the head at `place` of the plan.
template <class Map, class T, class Block>
class Kernel {
 public:
  LACUNA_DEVICE Kernel(const Map& map, const Call<T>& call, const Block& block, const Task& task, int place, const Memory<T>& memory)
      : map_(map), call_(call), block_(block), task_(task), place_(place), head_(call.plan.heads[place]), memory_(memory) {}

  LACUNA_DEVICE void forward(const Tile& tile) {
    load_rows(tile, call_.q, memory_.q);
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

  LACUNA_DEVICE void backward(const Tile& tile, const Chunk& chunk) {
    block_.sync();  // with the tile before
    load_rows(tile, call_.q, memory_.q);
    load_rows(tile, call_.context_gradient, memory_.context_gradient);
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
    scatter(tile, chunk, memory_.weights, memory_.context_gradient, call_.v_partial);
    scatter(tile, chunk, memory_.gradient, memory_.q, call_.k_partial);
    combine(tile, memory_.gradient, call_.k, call_.q_gradient);
  }

 private:
  // --- rows ---

  template <class F>
  LACUNA_DEVICE void for_each_row(const Tile& tile, F f) {
    for (int r = block_.warp(); r < tile.rows; r += Block::kWarps) f(r);
  }

  LACUNA_DEVICE float* row_of(float* rows, int r) const { return rows + static_cast<int64_t>(r) * task_.stride; }
  LACUNA_DEVICE int query_of(const Tile& tile, int r) const { return tile.first + r; }

  /// Row r: scores -> weights before dropout, 0 at keys that it does not see.
  LACUNA_DEVICE void weigh(const Tile& tile, int r) {
    const RowKeys<Block> keys(call_.plan, task_, tile, r, block_);
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
  LACUNA_DEVICE void find_gradient(const Tile& tile, int r) {
    const RowKeys<Block> keys(call_.plan, task_, tile, r, block_);
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
      if (block_.lane() == 0)
        for (int i = 0; i < call_.num_numbers; ++i) call_.number_gradients[number_of(tile, r) + i] = number_gradients[i];
    }
    keys.spread(list, gradient);
  }

  LACUNA_DEVICE WarpRow<Block> row(float* data, int length) const { return {data, length, memory_.positions, memory_.scratch, block_}; }

  LACUNA_DEVICE types::RowContext<float> context_of(const Tile& tile, int r, double* number_gradients) const {
    types::RowContext<float> context;
    context.training = call_.training;
    context.position = static_cast<float>(query_position(tile, r));
    context.num_numbers = call_.num_numbers;
    context.numbers = call_.numbers + number_of(tile, r);
    context.number_gradients = number_gradients;
    return context;
  }

  LACUNA_DEVICE int32_t query_position(const Tile& tile, int r) const {
    return task_.first_position + query_of(tile, r) * task_.query_step;
  }

  /// Where the numbers of row r begin.
  LACUNA_DEVICE int64_t number_of(const Tile& tile, int r) const {
    return (batch_row(tile, r) * call_.num_heads + head_) * call_.num_numbers;
  }

  LACUNA_DEVICE void find_positions(const RowKeys<Block>& keys) {
    if (!call_.uses_positions) return;
    keys.for_each([&](int n, int e) { memory_.positions[n] = static_cast<float>(key_position(e)); });
    block_.sync_warp();
  }

  /// Multiplies row r with its dropout factors. Four keys share a draw, so a lane does all four.
  LACUNA_DEVICE void drop(const Tile& tile, int r, float* rows) {
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

  /// out[r][e] = factor * rows[r] . key row e. `only_weighted`: 0 in tiles of keys without any weight.
  LACUNA_DEVICE void dots(const Tile& tile, const T* rows, const Matrix<const T>& keys, float factor, bool only_weighted, float* out) {
    for (int e = kTile * block_.warp(); e < tile.width; e += kTile * Block::kWarps) {
      Fragment<T, Block> sum(block_);
      sum.clear();
      if (!only_weighted || take_left(tile, memory_.weights, e)) {
        for (int c = 0; c < call_.width; c += kTile) {
          take_right(tile, keys, e, c);
          sum.template add<false, true>(rows + c, call_.width, memory_.right, kTile);
          block_.sync_warp();
        }
      }
      sum.store(memory_.product, kTile);
      block_.sync_warp();
      for_each_element([&](int r, int j) {
        if (r < tile.rows) row_of(out, r)[e + j] = factor * memory_.product[r * kTile + j];
      });
    }
  }

  /// out[query r] = sum_e weights[r][e] key row e
  LACUNA_DEVICE void combine(const Tile& tile, float* weights, const Matrix<const T>& keys, const Matrix<T>& out) {
    for (int c = kTile * block_.warp(); c < call_.width; c += kTile * Block::kWarps) {
      Fragment<T, Block> sum(block_);
      sum.clear();
      for (int e = 0; e < tile.width; e += kTile) {
        if (!take_left(tile, weights, e)) continue;
        take_right(tile, keys, e, c);
        sum.template add<false, false>(memory_.left, kTile, memory_.right, kTile);
        block_.sync_warp();
      }
      sum.store(memory_.product, kTile);
      block_.sync_warp();
      for_each_element([&](int r, int i) {
        if (r < tile.rows && c + i < call_.d_head)
          out.data[batch_row(tile, r) * out.row + head_ * out.head + c + i] = static_cast<T>(memory_.product[r * kTile + i]);
      });
    }
  }

  /// Adds sum_r weights[r][e] rows[r] to the chunk's own row of key e.
  LACUNA_DEVICE void scatter(const Tile& tile, const Chunk& chunk, float* weights, const T* rows, float* partial) {
    const int64_t first = static_cast<int64_t>(place_) * call_.plan.num_partials + chunk.first_partial + tile.begin - chunk.begin;
    for (int e = kTile * block_.warp(); e < tile.width; e += kTile * Block::kWarps) {
      if (!take_left(tile, weights, e)) continue;
      for (int c = 0; c < call_.width; c += kTile) {
        float* own = partial + (first + e) * call_.width + c;
        Fragment<T, Block> sum(block_);
        sum.load(own, call_.width);
        sum.template add<true, false>(memory_.left, kTile, rows + c, call_.width);
        sum.store(own, call_.width);
      }
      block_.sync_warp();
    }
  }

  /// memory.left = weights [kTile, e to e + kTile], 0 beyond the tile's rows. False if all are 0.
  LACUNA_DEVICE bool take_left(const Tile& tile, float* weights, int e) {
    bool has_weight = false;
    for_each_element([&](int r, int j) {
      const float weight = r < tile.rows ? row_of(weights, r)[e + j] : 0.f;
      memory_.left[r * kTile + j] = static_cast<T>(weight);
      has_weight = has_weight || weight != 0;
    });
    int lanes;
    block_.rank(has_weight, lanes);
    return lanes > 0;
  }

  /// memory.right = columns c to c + kTile of the rows of keys e to e + kTile, 0 beyond either's end.
  LACUNA_DEVICE void take_right(const Tile& tile, const Matrix<const T>& keys, int e, int c) {
    const T* head = keys.data + head_ * keys.head;
    const int step = call_.is_aligned ? kTogether : 1;
    for (int i = block_.lane() * step; i < kTile * kTile; i += Block::kLanes * step) {
      const int key = tile.begin + e + i / kTile, column = c + i % kTile;
      const bool is_there = key < task_.keys && column < call_.d_head;
      const T* from = is_there ? head + key_row(key) * keys.row + column : nullptr;
      if (call_.is_aligned) {
        copy_16_bytes(from, memory_.right + i);
      } else {
        memory_.right[i] = is_there ? *from : T(0.f);
      }
    }
    block_.sync_warp();
  }

  /// to [kTile, width] = the tile's rows, 0 beyond.
  LACUNA_DEVICE void load_rows(const Tile& tile, const Matrix<const T>& rows, T* to) {
    const int thread = block_.warp() * Block::kLanes + block_.lane();
    for (int i = thread; i < kTile * call_.width; i += Block::kWarps * Block::kLanes) {
      const int r = i / call_.width, c = i % call_.width;
      const bool is_there = r < tile.rows && c < call_.d_head;
      to[i] = is_there ? rows.data[batch_row(tile, r) * rows.row + head_ * rows.head + c] : T(0.f);
    }
  }

  /// f(row, column) for every element of a matrix, shared out among the lanes.
  template <class F>
  LACUNA_DEVICE void for_each_element(F f) {
    for (int i = block_.lane(); i < kTile * kTile; i += Block::kLanes) f(i / kTile, i % kTile);
    block_.sync_warp();
  }

  /// from null = zeros
  static LACUNA_DEVICE void copy_16_bytes(const T* from, T* to) {
#ifdef __CUDA_ARCH__
    *reinterpret_cast<uint4*>(to) = from != nullptr ? *reinterpret_cast<const uint4*>(from) : uint4{};
#else
    for (int i = 0; i < kTogether; ++i) to[i] = from != nullptr ? from[i] : T(0.f);
#endif
  }

  // --- where things are ---

  LACUNA_DEVICE int64_t batch_row(const Tile& tile, int r) const {
    return task_.first_query + static_cast<int64_t>(query_of(tile, r)) * task_.query_step;
  }
  LACUNA_DEVICE int32_t key_position(int e) const {
    return task_.key_positions < 0 ? e : call_.plan.key_positions[task_.key_positions + e];
  }
  LACUNA_DEVICE int64_t key_row(int e) const {
    const int32_t place = task_.first_key + key_position(e);
    return call_.plan.slots != nullptr ? call_.plan.slots[place] : place;
  }

  static constexpr int kTogether = 16 / sizeof(T);  // elements of 16 bytes

  const Map& map_;
  const Call<T>& call_;
  const Block& block_;
  const Task& task_;
  const int place_, head_;
  const Memory<T> memory_;
};

}  // namespace lacuna::cuda
