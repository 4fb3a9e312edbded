#pragma once

#include "attention/gpu/long_rows_base.h"

namespace lacuna::cuda {

/// The work of one thread on kLongKeys keys of a long sentence: their gradients.
template <class Map, class T, class Block>
class LongKeyGradients : LongRowsBase<Map, T, Block> {
 public:
  LACUNA_DEVICE LongKeyGradients(const Map& map, const KernelCall<T>& call, const Block& block, const LongSentence& sentence, int place,
                                 const LongKeys& keys, const LongKeysMemory<T>& memory)
      : Base(map, call, block, sentence, place), keys_(keys), memory_(memory) {}

  LACUNA_DEVICE void run() const {
    const auto read = [&](const Matrix<const T>& from, T* to) {
      this->read_rows(from, kLongKeys, 0, call_.width, this->keys_from(keys_.first), to, memory_.stride, this->thread(), this->threads());
    };
    read(call_.k, memory_.keys);
    read(call_.v, memory_.values);
    AsyncCopies::end_group();
    for (int own = kTile * block_.warp(); own < kLongKeys; own += kTile * block_.warps())
      for (int c = 0; c < call_.width; c += kColumns) find_gradients(own, c);
    AsyncCopies::wait_for_all();  // where no query weighs the keys, nobody has: no copy may outlive the block
  }

 private:
  using Base = LongRowsBase<Map, T, Block>;
  using Base::block_, Base::call_, Base::sentence_, Base::map_, Base::head_;
  using Base::kOwnOfTile, Base::kSquares, Base::kLeftStride;
  using typename Base::Layout, typename Base::Number, typename Base::Product;

  /// Finds columns c to c + kColumns of the gradients of the warp's kTile keys from keys_.first + own on.
  LACUNA_DEVICE void find_gradients(int own, int c) const {
    Number of_keys[kSquares * kOwnOfTile], of_values[kSquares * kOwnOfTile];
    this->clear(of_keys, kSquares * kOwnOfTile);
    this->clear(of_values, kSquares * kOwnOfTile);
    const int group = (keys_.first + own) / kKeyGroup;
    int tile = next_from(keys_.begin), buffer = 0;
    if (tile < keys_.end) read_tile(tile, buffer);
    while (tile < keys_.end) {
      const int next = next_from(tile + 1);
      if (next < keys_.end) {
        read_tile(next, 1 - buffer);
        AsyncCopies::wait_for_all_but_the_last();
      } else {
        AsyncCopies::wait_for_all();
      }
      block_.sync();
      if (is_wanted(group, tile)) {
        find_square(own, tile, buffer);
        const auto add = [&](const T* square, const T* rows, Number* sums) {
          this->add_product(c, Product::left_transposed(block_, square, kLeftStride), rows + c, memory_.stride, sums);
        };
        add(memory_.weights, memory_.context_gradient(buffer), of_values);
        add(memory_.gradient, memory_.queries(buffer), of_keys);
      }
      block_.sync();
      tile = next;
      buffer = 1 - buffer;
    }
    write(own, c, of_keys, call_.k_gradient);
    write(own, c, of_values, call_.v_gradient);
  }

  /// Leaves in shared memory the weights behind dropout of a tile's queries for the warp's keys, and the gradients of their scores.
  LACUNA_DEVICE void find_square(int own, int tile, int buffer) const {
    const int first_key = keys_.first + own, first_query = kTile * tile;
    const LongRowRecord* const records = memory_.records(buffer);
    constexpr int kStride = static_cast<int>(sizeof(LongRowRecord) / sizeof(float));
    const KeyRuns<Block> seen = keys_seen(records, first_query);
    Number weights[kOwnOfTile], gradient[kOwnOfTile], numbers[kMaxNumbers], number_gradients[kMaxNumbers] = {};
    types::RowContext<Number> context = context_of(records, first_query, numbers);
    context.number_gradients = number_gradients;  // the kernel that owns queries has them
    dots(memory_.queries(buffer), memory_.keys + own * memory_.stride, weights);
    LACUNA_UNROLL
    for (int i = 0; i < kOwnOfTile; ++i) weights[i] = this->scaled(weights[i]);
    this->recall_weights(weights, first_key, records->of_weights, kStride, context);
    this->clear_unseen(seen, first_key, weights);
    dots(memory_.context_gradient(buffer), memory_.values + own * memory_.stride, gradient);
    this->drop(first_query, first_key, gradient);
    int next = 0;
    const auto row = [&](Number* data) {
      return RecalledRow<Block>{data, first_key, records->of_gradients, kStride, &next, kRowResults, &block_};
    };
    types::run_backward(map_, row(weights), row(weights), row(gradient), context);
    LACUNA_UNROLL
    for (int i = 0; i < kOwnOfTile; ++i) gradient[i] = gradient[i] * Number(call_.scale);
    this->clear_unseen(seen, first_key, gradient);
    this->drop(first_query, first_key, weights);
    Product::store(block_, Product::left_of(block_, weights), memory_.weights, kLeftStride);
    Product::store(block_, Product::left_of(block_, gradient), memory_.gradient, kLeftStride);
    block_.sync_warp();  // other lanes will read
  }

  LACUNA_DEVICE KeyRuns<Block> keys_seen(const LongRowRecord* records, int first_query) const {
    KeyRuns<Block> seen;
    LACUNA_UNROLL
    for (int r = 0; r < Layout::kRows; ++r) {
      const LongRowRecord& record = records[Layout::row(block_.lane(), r)];
      const bool is_there = this->query_of(first_query, r) < sentence_.queries;
      seen.begin[r] = is_there ? record.begin : 0;
      seen.end[r] = is_there ? record.end : 0;
    }
    return seen;
  }
  LACUNA_DEVICE types::RowContext<Number> context_of(const LongRowRecord* records, int first_query, Number* numbers) const {
    LACUNA_UNROLL
    for (int r = 0; r < Layout::kRows; ++r) {
      LACUNA_UNROLL
      for (int i = 0; i < kMaxNumbers; ++i) numbers[i].of[r] = records[Layout::row(block_.lane(), r)].numbers[i];
    }
    return Base::context_of(first_query, numbers, nullptr, /*is_recalled=*/true);
  }

  /// to [kTile, kTile] = rows x the transposed of `keys`
  LACUNA_DEVICE void dots(const T* rows, const T* keys, Number* to) const {
    this->clear(to, kOwnOfTile);
    for (int c = 0; c < call_.width; c += kTile)
      Product::multiply_add(block_, Product::left(block_, rows + c, memory_.stride),
                            Product::right_transposed(block_, keys + c, memory_.stride), to);
  }

  /// Begins to copy what is needed of a tile of queries.
  LACUNA_DEVICE void read_tile(int tile, int buffer) const {
    this->read_queries(call_.q, kTile * tile, memory_.queries(buffer), memory_.stride);
    this->read_queries(call_.context_gradient, kTile * tile, memory_.context_gradient(buffer), memory_.stride);
    constexpr int kPieces = sizeof(LongRowRecord) / 16;
    for (int i = this->thread(); i < kTile * kPieces; i += this->threads()) {
      const int query = kTile * tile + i / kPieces;
      const float* const record = query < sentence_.queries ? reinterpret_cast<const float*>(call_.records + this->row_of(query)) : nullptr;
      float* const to = reinterpret_cast<float*>(memory_.records(buffer)) + 4 * i;
      AsyncCopies::begin_16_bytes(record == nullptr ? nullptr : record + 4 * (i % kPieces), to);
    }
    AsyncCopies::end_group();
  }

  /// Returns the next tile from `tile` on in which a query weighs one of the block's keys: the same for all threads.
  LACUNA_DEVICE int next_from(int tile) const {
    const auto has_some = [&] {
      for (int group = keys_.first / kKeyGroup; group < (keys_.first + kLongKeys) / kKeyGroup; ++group)
        if (is_wanted(group, tile)) return true;
      return false;
    };
    while (tile < keys_.end && !has_some()) ++tile;
    return tile;
  }
  LACUNA_DEVICE bool is_wanted(int group, int tile) const {
    return group < this->groups() && (!call_.sparse || *this->has_weight(group, tile) != 0);
  }

  /// Writes columns c to c + kColumns of the keys' gradients.
  LACUNA_DEVICE void write(int own, int c, const Number* sums, const Matrix<T>& to) const {
    LACUNA_UNROLL
    for (int r = 0; r < Layout::kRows; ++r) {
      const int key = keys_.first + own + Layout::row(block_.lane(), r);
      if (key >= sentence_.keys) continue;
      T* const row = to.data + this->key_row(key) * to.row + head_ * to.head + c;
      LACUNA_UNROLL
      for (int i = 0; i < kSquares * kOwnOfTile; ++i) {
        const int column = Layout::column(block_.lane(), i);
        if (c + column < call_.d_head) row[column] = static_cast<T>(sums[i].of[r]);
      }
    }
  }

  const LongKeys& keys_;
  const LongKeysMemory<T> memory_;
};

}  // namespace lacuna::cuda
