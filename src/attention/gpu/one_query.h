#pragma once

#include "attention/gpu/block.h"
#include "attention/gpu/one_query_call.h"
#include "attention/gpu/row_warp.h"

// One query a row, as in a step of a decoder, where tensor cores would have one row of sixteen to work on. A warp takes a row and head: its
// lanes share the keys for the scores, the type's own row map turns these into weights, and then the lanes share the columns of the values.
// Queries of one sentence are neighboring rows, so that the warps of a block read the same keys, if they see the same.
//
// A row's bits depend on it alone: no sum depends on how many rows, warps or blocks there are.
namespace lacuna::cuda {

/// The work of one thread.
template <class Map, class T, class Block>
class OneQuery {
 public:
  /// `memory`: the block's, for all of its warps.
  LACUNA_DEVICE OneQuery(const Map& map, const OneQueryCall<T>& call, const Block& block, int index, unsigned char* memory)
      : map_(map), call_(call), block_(block), warp_(index * block.warps() + block.warp()), memory_(memory_of(memory)) {}

  /// Works on every `blocks`-th part of the rows and heads.
  LACUNA_DEVICE void run(int blocks) const {
    const int64_t all = int64_t{call_.num_rows} * call_.num_heads;
    for (int64_t i = warp_; i < all; i += int64_t{blocks} * block_.warps())
      attend(static_cast<int>(i % call_.num_rows), static_cast<int>(i / call_.num_rows));
  }

 private:
  static constexpr int kTogether = 16 / sizeof(T);  // numbers of 16 bytes
  static constexpr int kKeysAtOnce = 8;

  LACUNA_DEVICE OneQueryMemory memory_of(unsigned char* memory) const {
    const bool are_shared = call_.row_memory == nullptr;
    const int64_t each = OneQueryMemory::shared_bytes(call_.d_head, call_.row_size, call_.uses_positions, are_shared);
    unsigned char* const rows =
        are_shared ? nullptr : call_.row_memory + warp_ * OneQueryMemory::row_bytes(call_.row_size, call_.uses_positions);
    return {memory + block_.warp() * each, rows, call_.d_head, call_.row_size};
  }

  LACUNA_DEVICE void attend(int row, int head) const {
    const int last = call_.num_keys[row] - 1;
    if (call_.new_k.data != nullptr) append(row, head, last);
    const T* const query = call_.q.data + row * call_.q.row + head * call_.q.head;
    for (int c = block_.lane(); c < call_.d_head; c += Block::kLanes) memory_.q[c] = static_cast<float>(turned(query, c, last));
    const int count = find_keys(row, head, last);
    block_.sync_warp();
    if (count > 0) {
      for (int n = block_.lane(); n < count; n += Block::kLanes) memory_.weights[n] = call_.scale * score(head, memory_.keys[n]);
      block_.sync_warp();
      weigh(row, head, last, count);
      block_.sync_warp();
    }
    combine(row, head, count);
    block_.sync_warp();  // before the memory holds the next row
  }

  /// Writes the newest key and value to their place, for this warp alone: no other query sees them.
  LACUNA_DEVICE void append(int row, int head, int last) const {
    const int64_t to = key_row(row, last);
    const T* const key = call_.new_k.data + row * call_.new_k.row + head * call_.new_k.head;
    const T* const value = call_.new_v.data + row * call_.new_v.row + head * call_.new_v.head;
    for (int c = block_.lane(); c < call_.d_head; c += Block::kLanes) {
      call_.k.data[to * call_.k.row + head * call_.k.head + c] = turned(key, c, last);
      call_.v.data[to * call_.v.row + head * call_.v.head + c] = value[c];
    }
  }

  /// Column c of a query or key at this position.
  LACUNA_DEVICE T turned(const T* numbers, int c, int position) const {
    if (call_.cosines == nullptr) return numbers[c];
    const int pairs = call_.d_head / 2, pair = call_.turns_neighbors ? c / 2 : c % pairs;
    const bool is_first = call_.turns_neighbors ? c % 2 == 0 : c < pairs;
    const int other = call_.turns_neighbors ? c ^ 1 : (c + pairs) % call_.d_head;
    const int64_t angle = int64_t{position} * pairs + pair;
    const float own = static_cast<float>(numbers[c]) * call_.cosines[angle],
                by_other = static_cast<float>(numbers[other]) * call_.sines[angle];
    return static_cast<T>(is_first ? own - by_other : own + by_other);
  }

  LACUNA_DEVICE int64_t key_row(int row, int position) const {
    return call_.slots != nullptr ? call_.slots[row * call_.slot_stride + position] : call_.first_key[row] + position;
  }

  /// Lists the rows of the keys that the query sees, with their positions; returns their number.
  LACUNA_DEVICE int find_keys(int row, int head, int last) const {
    const auto put = [&](int n, int position) {
      memory_.keys[n] = static_cast<int32_t>(key_row(row, position));
      if (call_.uses_positions) memory_.positions[n] = static_cast<float>(position);
    };
    if (call_.segments == nullptr) {
      for (int n = block_.lane(); n <= last; n += Block::kLanes) put(n, n);
      return last + 1;
    }
    if (last < 0) return 0;
    const int32_t* const first = call_.first_segment + (call_.has_patterns_of_heads ? head * call_.num_positions : 0) + last;
    int before = 0;
    for (int s = first[0]; s < first[1]; ++s) {
      const KeySegment segment = call_.segments[s];
      for (int n = block_.lane(); n < segment.count; n += Block::kLanes) put(before + n, segment.begin + n * segment.stride);
      before += segment.count;
    }
    return before;
  }

  /// q . k. Each lane has a key of its own.
  LACUNA_DEVICE float score(int head, int64_t key) const {
    const T* const numbers = call_.k.data + key * call_.k.row + head * call_.k.head;
    float sums[4] = {};
    for (int c = 0; c < call_.d_head; c += kTogether) {
      T of_key[kTogether] = {};
      load(numbers + c, call_.d_head - c, of_key);
      for (int i = 0; i < kTogether; ++i)
        if (c + i < call_.d_head) sums[i % 4] += memory_.q[c + i] * static_cast<float>(of_key[i]);
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  LACUNA_DEVICE void weigh(int row, int head, int last, int count) const {
    float numbers[kMaxNumbers] = {};
    for (int i = 0; i < kMaxNumbers; ++i)
      if (i < call_.num_numbers) numbers[i] = call_.numbers[i].data[row * call_.numbers[i].row + head * call_.numbers[i].head];
    types::RowContext<float> context;
    context.position = static_cast<float>(last);
    context.num_numbers = call_.num_numbers;
    context.numbers = numbers;
    types::run_forward(map_, WarpRow<Block>{memory_.weights, count, memory_.positions, memory_.scratch, block_}, context);
  }

  /// Writes the sum of the values by their weights. Each lane has pairs of columns of its own; values without weight are not read.
  LACUNA_DEVICE void combine(int row, int head, int count) const {
    const T* const values = call_.v.data + head * call_.v.head;
    T* const to = call_.context.data + row * call_.context.row + head * call_.context.head;
    for (int c = 2 * block_.lane(); c < call_.d_head; c += 2 * Block::kLanes) {
      float sums[2] = {};
      for (int first = 0; first < count; first += kKeysAtOnce) {
        float weights[kKeysAtOnce];
        T of_values[kKeysAtOnce][2] = {};
        for (int j = 0; j < kKeysAtOnce; ++j) {
          weights[j] = first + j < count ? memory_.weights[first + j] : 0.f;
          if (weights[j] != 0) load(values + memory_.keys[first + j] * call_.v.row + c, call_.d_head - c, of_values[j]);
        }
        for (int j = 0; j < kKeysAtOnce; ++j)
          for (int i = 0; i < 2; ++i)
            if (weights[j] != 0) sums[i] += weights[j] * static_cast<float>(of_values[j][i]);
      }
      for (int i = 0; i < 2; ++i)
        if (c + i < call_.d_head) to[c + i] = static_cast<T>(sums[i]);
    }
  }

  /// to = the numbers at `from`, of which `count` exist: all at once where they lie so.
  template <int kCount>
  LACUNA_DEVICE void load(const T* from, int count, T (&to)[kCount]) const {
    struct alignas(kCount * sizeof(T)) All {
      T of[kCount];
    };
    if (call_.is_aligned && count >= kCount) {
      const All all = *reinterpret_cast<const All*>(from);
      for (int i = 0; i < kCount; ++i) to[i] = all.of[i];
    } else {
      for (int i = 0; i < kCount; ++i)
        if (i < count) to[i] = from[i];
    }
  }

  const Map& map_;
  const OneQueryCall<T>& call_;
  const Block& block_;
  const int warp_;  // of all blocks
  const OneQueryMemory memory_;
};

}  // namespace lacuna::cuda
