#pragma once

#include "attention/gpu/long_rows_base.h"

namespace lacuna::cuda {

/// The work of one thread on a tile of queries of a long sentence, for the head at `place` of the schedule.
template <class Map, class T, class Block>
class LongQueries : LongRowsBase<Map, T, Block> {
 public:
  LACUNA_DEVICE LongQueries(const Map& map, const KernelCall<T>& call, const Block& block, const LongSentence& sentence, int place,
                            const LongTile& tile, const LongRowsMemory<T>& memory)
      : Base(map, call, block, sentence, place), tile_(tile), memory_(memory), seen_(keys_seen()), are_none_(see_none()) {}

  LACUNA_DEVICE void forward() const {
    read_queries(call_.q, tile_.first, memory_.queries, memory_.stride);
    AsyncCopies::end_group();
    AsyncCopies::wait_for_all();
    block_.sync();
    find_scores();
    weigh();
    finish_weights();
    block_.sync_warp();  // with the lane that has set the flags
    combine(memory_.weights, call_.v, call_.context);
  }

  LACUNA_DEVICE void backward() const {
    read_queries(call_.q, tile_.first, memory_.queries, memory_.stride);
    read_queries(call_.context_gradient, tile_.first, memory_.context_gradient, memory_.stride);
    AsyncCopies::end_group();
    read_results();
    AsyncCopies::wait_for_all();
    block_.sync();
    recall_rows();
    find_score_gradients();
    combine(memory_.gradient, call_.k, call_.q_gradient);
  }

 private:
  using Base = LongRowsBase<Map, T, Block>;
  using Base::block_, Base::call_, Base::sentence_, Base::map_, Base::head_;
  using Base::kOwnOfGroup, Base::kOwnOfTile, Base::kRightStride, Base::kSquares, Base::kTilesOfGroup;
  using Base::read_queries, Base::thread, Base::threads, Base::query_of, Base::row_of, Base::clear;
  using typename Base::Layout, typename Base::Number, typename Base::Product;

  // --- rows ---

  /// Returns the keys that each row sees. In the place of none stands the tile's first: a row map wants one at least.
  LACUNA_DEVICE KeyRuns<Block> keys_seen() const {
    KeyRuns<Block> seen;
    LACUNA_UNROLL
    for (int r = 0; r < Layout::kRows; ++r) {
      const KeySegment run = run_of(query_of(tile_.first, r));
      seen.begin[r] = run.count > 0 ? run.begin : kKeyGroup * tile_.begin;
      seen.end[r] = seen.begin[r] + (run.count > 0 ? run.count : 1);
    }
    return seen;
  }
  /// Returns the keys that a query sees; none behind the last query.
  LACUNA_DEVICE KeySegment run_of(int query) const {
    if (query >= sentence_.queries) return {};
    const int32_t* const entry = call_.schedule.first_segment + sentence_.first_segment + query;
    return entry[0] < entry[1] ? call_.schedule.segments[entry[0]] : KeySegment{};
  }
  /// Returns the rows that see no key.
  LACUNA_DEVICE TruthPerRow<Block> see_none() const {
    TruthPerRow<Block> result;
    LACUNA_UNROLL
    for (int r = 0; r < Layout::kRows; ++r) result.of[r] = run_of(query_of(tile_.first, r)).count == 0;
    return result;
  }

  /// The row's elements in `rows`.
  LACUNA_DEVICE LaneElements<Block> elements(float* rows) const {
    return {rows + int64_t{block_.warp()} * groups_of_warp(tile_.end - tile_.begin) * kKeyGroup * kTile + block_.lane()};
  }
  LACUNA_DEVICE LongRow<Block> row(float* rows, ResultLog& log) const {
    const int first = first_group(), count = (tile_.end - first + block_.warps() - 1) / block_.warps();
    return {elements(rows), first, count > 0 ? count : 0, seen_, memory_.joined, scratch(), &log, &block_};
  }
  /// Where the lane may pack its elements: in place of keys, if they fit there. Whether it may depends on the sentence alone, as the order
  /// of sums then does.
  LACUNA_DEVICE float* scratch() const {
    const auto of_warp = static_cast<int>(2 * memory_.kRing * sizeof(T) / sizeof(float));
    const bool fits = groups_of_warp(this->groups()) * kKeyGroup * kTile <= of_warp;
    return fits ? floats_of(block_.warp()) + block_.lane() : nullptr;
  }

  LACUNA_DEVICE types::RowContext<Number> context_of(Number* numbers, Number* kept, bool is_recalled) const {
    LACUNA_UNROLL
    for (int r = 0; r < Layout::kRows; ++r) {
      const int query = query_of(tile_.first, r), real = query < sentence_.queries ? query : 0;
      LACUNA_UNROLL
      for (int i = 0; i < kMaxNumbers; ++i)
        numbers[i].of[r] = i < call_.num_numbers ? call_.numbers[row_of(real) * call_.num_numbers + i] : 0.f;
    }
    return Base::context_of(tile_.first, numbers, kept, is_recalled);
  }

  /// scores = scale * queries x the transposed of the keys
  LACUNA_DEVICE void find_scores() const {
    const LaneElements<Block> scores = elements(memory_.weights);
    const int parts = columns();
    Number sums[kOwnOfGroup];
    const auto load = [&](int group, int part, T* to) { read_group(call_.k, group, part, to); };
    for_each_group(parts, /*only_weighted=*/false, load, [&](int /*group*/, int n, int part, const T* keys) {
      if (part == 0) clear(sums, kOwnOfGroup);
      add_dots(memory_.queries, part, keys, sums);
      if (part + 1 < parts) return;
      LACUNA_UNROLL
      for (int i = 0; i < kOwnOfGroup; ++i) scores.set(n, i, select(are_none_, Number(0), this->scaled(sums[i])));
    });
  }

  /// Scores -> weights, and what passes over them have found -> KernelCall::row_results.
  LACUNA_DEVICE void weigh() const {
    Number numbers[kMaxNumbers], kept(0);
    types::RowContext<Number> context = context_of(numbers, &kept, /*is_recalled=*/false);
    ResultLog log = {memory_.log, 1, kRowResults};
    context.is_searching = &log.is_searching;
    types::run_forward(map_, row(memory_.weights, log), context);
    if (call_.row_results == nullptr) return;
    if (block_.warp() == 0 && block_.lane() % Layout::kSharers == 0) {
      LACUNA_UNROLL
      for (int r = 0; r < Layout::kRows; ++r) memory_.log[Layout::row(block_.lane(), r) * ResultLog::kStride] = kept.of[r];
    }
    block_.sync();
    for (int i = thread(); i < kTile * kRowResults; i += threads()) {
      const int r = i / kRowResults, place = i % kRowResults;
      if (tile_.first + r < sentence_.queries)
        call_.row_results[row_of(tile_.first + r) * kRowResults + place] = memory_.log[r * ResultLog::kStride + place];
    }
  }

  /// Clears weights of keys that are not seen and those that dropout drops; notes where any is left.
  LACUNA_DEVICE void finish_weights() const {
    const LaneElements<Block> weights = elements(memory_.weights);
    for (int group = first_group(), n = 0; group < tile_.end; group += block_.warps(), ++n) {
      bool has_weight = false;
      for (int j = 0; j < kTilesOfGroup; ++j) {
        const int key = kKeyGroup * group + kTile * j;
        Number own[kOwnOfTile];
        LACUNA_UNROLL
        for (int i = 0; i < kOwnOfTile; ++i) own[i] = select(are_none_, Number(0), weights.get(n, kOwnOfTile * j + i));
        this->clear_unseen(seen_, key, own);
        LACUNA_UNROLL
        for (int i = 0; i < kOwnOfTile; ++i) {
          LACUNA_UNROLL
          for (int r = 0; r < Layout::kRows; ++r) has_weight = has_weight || own[i].of[r] != 0;
        }
        this->drop(tile_.first, key, own);
        LACUNA_UNROLL
        for (int i = 0; i < kOwnOfTile; ++i) weights.set(n, kOwnOfTile * j + i, own[i]);
      }
      has_weight = Block::on_any_lane(has_weight);
      if (block_.lane() == 0) memory_.flags[group - tile_.begin] = has_weight ? 1 : 0;
    }
    if (call_.row_results == nullptr) return;  // there is no backward pass to be told
    block_.sync();
    for (int group = thread(); group < this->groups(); group += threads()) {
      const bool is_inside = group >= tile_.begin && group < tile_.end;
      *this->has_weight(group, tile_.first / kTile) = is_inside ? memory_.flags[group - tile_.begin] : 0;
    }
  }

  /// Begins the backward pass with what the forward pass has noted of the tile.
  LACUNA_DEVICE void read_results() const {
    for (int i = thread(); i < kTile * kRowResults; i += threads()) {
      const int r = i / kRowResults, place = i % kRowResults;
      const bool is_there = tile_.first + r < sentence_.queries;
      memory_.log[r * ResultLog::kStride + place] = is_there ? call_.row_results[row_of(tile_.first + r) * kRowResults + place] : 0.f;
    }
    for (int group = tile_.begin + thread(); group < tile_.end; group += threads())
      memory_.flags[group - tile_.begin] = group < this->groups() ? *this->has_weight(group, tile_.first / kTile) : 0;
  }

  /// Works out weights before dropout, and their gradients behind it; 0 where a group has no weight.
  LACUNA_DEVICE void recall_rows() const {
    const LaneElements<Block> weights = elements(memory_.weights), gradient = elements(memory_.gradient);
    const int parts = columns();
    Number numbers[kMaxNumbers], sums[kOwnOfGroup];
    const types::RowContext<Number> context = context_of(numbers, nullptr, /*is_recalled=*/true);
    for (int group = first_group(), n = 0; group < tile_.end; group += block_.warps(), ++n) {
      if (is_wanted(group)) continue;
      for (int i = 0; i < kOwnOfGroup; ++i) {
        weights.set(n, i, Number(0));
        gradient.set(n, i, Number(0));
      }
    }
    const auto load = [&](int group, int part, T* to) {
      read_group(part < parts ? call_.k : call_.v, group, part < parts ? part : part - parts, to);
    };
    for_each_group(2 * parts, /*only_weighted=*/true, load, [&](int group, int n, int part, const T* rows) {
      const bool is_of_keys = part < parts;
      if (part == 0 || part == parts) clear(sums, kOwnOfGroup);
      add_dots(is_of_keys ? memory_.queries : memory_.context_gradient, is_of_keys ? part : part - parts, rows, sums);
      if (part != parts - 1 && part != 2 * parts - 1) return;
      LACUNA_UNROLL
      for (int j = 0; j < kTilesOfGroup; ++j) {
        const int key = kKeyGroup * group + kTile * j;
        Number* const own = sums + kOwnOfTile * j;
        if (is_of_keys) {
          LACUNA_UNROLL
          for (int i = 0; i < kOwnOfTile; ++i) own[i] = this->scaled(own[i]);
          this->recall_weights(own, key, memory_.log, ResultLog::kStride, context);
          this->clear_unseen(seen_, key, own);
        } else {
          this->drop(tile_.first, key, own);
        }
        LACUNA_UNROLL
        for (int i = 0; i < kOwnOfTile; ++i)
          (is_of_keys ? weights : gradient).set(n, kOwnOfTile * j + i, select(are_none_, Number(0), own[i]));
      }
    });
  }

  /// Gradients of weights -> those of q.k; what passes over them have found -> KernelCall::records.
  LACUNA_DEVICE void find_score_gradients() const {
    Number numbers[kMaxNumbers], number_gradients[kMaxNumbers] = {};
    types::RowContext<Number> context = context_of(numbers, nullptr, /*is_recalled=*/false);
    context.number_gradients = number_gradients;
    ResultLog log = {memory_.log, kRowResults, 2 * kRowResults};
    const LongRow<Block> weights = row(memory_.weights, log), gradient = row(memory_.gradient, log);
    types::run_backward(map_, weights, weights, gradient, context);
    store_number_gradients(number_gradients);
    block_.sync();
    for (int r = thread(); r < kTile; r += threads()) store_record(r);
    const LaneElements<Block> own = elements(memory_.gradient);
    for (int group = first_group(), n = 0; group < tile_.end; group += block_.warps(), ++n)
      for (int i = 0; i < kOwnOfGroup; ++i) {
        const int key = kKeyGroup * group + Layout::column(block_.lane(), i);
        const Number scaled = own.get(n, i) * Number(call_.scale);
        own.set(n, i, select(are_none_, Number(0), select(seen_.contain(key), scaled, Number(0))));
      }
  }

  LACUNA_DEVICE void store_number_gradients(const Number* gradients) const {
    if (block_.warp() > 0 || block_.lane() % Layout::kSharers != 0) return;
    LACUNA_UNROLL
    for (int r = 0; r < Layout::kRows; ++r) {
      const int query = query_of(tile_.first, r);
      if (are_none_.of[r]) continue;
      LACUNA_UNROLL
      for (int i = 0; i < kMaxNumbers; ++i)
        if (i < call_.num_numbers) call_.number_gradients[row_of(query) * call_.num_numbers + i] = static_cast<double>(gradients[i].of[r]);
    }
  }

  LACUNA_DEVICE void store_record(int r) const {
    const int query = tile_.first + r;
    if (query >= sentence_.queries) return;
    const KeySegment run = run_of(query);
    LongRowRecord& record = call_.records[row_of(query)];
    for (int i = 0; i < kRowResults; ++i) {
      record.of_weights[i] = memory_.log[r * ResultLog::kStride + i];
      record.of_gradients[i] = memory_.log[r * ResultLog::kStride + kRowResults + i];
    }
    record.begin = run.begin;
    record.end = run.begin + run.count;
    for (int i = 0; i < kMaxNumbers; ++i)
      record.numbers[i] = i < call_.num_numbers ? call_.numbers[row_of(query) * call_.num_numbers + i] : 0.f;
  }

  // --- products ---

  /// sums of kKeyGroup keys += columns of `queries` x the transposed of the same columns of `keys`, which are the part-th kColumns.
  LACUNA_DEVICE void add_dots(const T* queries, int part, const T* keys, Number* sums) const {
    this->for_each_square(kColumns * part, [&](int i) {
      const auto left = Product::left(block_, queries + kColumns * part + kTile * i, memory_.stride);
      LACUNA_UNROLL
      for (int j = 0; j < kTilesOfGroup; ++j)
        Product::multiply_add(block_, left, Product::right_transposed(block_, keys + kTile * j * kRightStride + kTile * i, kRightStride),
                              sums + kOwnOfTile * j);
    });
  }

  /// out[queries] = weights x rows of the keys. Each warp sums its keys, and then these sums are added up in order.
  LACUNA_DEVICE void combine(float* weights, const Matrix<const T>& keys, const Matrix<T>& out) const {
    const LaneElements<Block> own = elements(weights);
    for (int part = 0; part < columns(); ++part) {
      Number sums[kSquares * kOwnOfTile];
      clear(sums, kSquares * kOwnOfTile);
      const auto load = [&](int group, int /*part*/, T* to) { read_group(keys, group, part, to); };
      for_each_group(1, /*only_weighted=*/true, load, [&](int /*group*/, int n, int /*part*/, const T* rows) {
        LACUNA_UNROLL
        for (int j = 0; j < kTilesOfGroup; ++j) {
          Number left[kOwnOfTile];
          LACUNA_UNROLL
          for (int i = 0; i < kOwnOfTile; ++i) left[i] = own.get(n, kOwnOfTile * j + i);
          this->add_product(kColumns * part, Product::left_of(block_, left), rows + kTile * j * kRightStride, kRightStride, sums);
        }
      });
      put_sums(sums);
      block_.sync();
      write_sums(kColumns * part, out);
      block_.sync();
    }
  }
  /// Puts the warp's sums where it had keys.
  LACUNA_DEVICE void put_sums(const Number* sums) const {
    float* const to = floats_of(block_.warp());
    LACUNA_UNROLL
    for (int i = 0; i < kSquares * kOwnOfTile; ++i) {
      LACUNA_UNROLL
      for (int r = 0; r < Layout::kRows; ++r)
        to[Layout::row(block_.lane(), r) * kSumStride + Layout::column(block_.lane(), i)] = sums[i].of[r];
    }
  }
  LACUNA_DEVICE void write_sums(int c, const Matrix<T>& out) const {
    for (int i = thread(); i < kTile * kColumns; i += threads()) {
      const int r = i / kColumns, column = i % kColumns;
      if (tile_.first + r >= sentence_.queries || c + column >= call_.d_head) continue;
      float sum = 0;
      for (int warp = 0; warp < block_.warps(); ++warp) sum += floats_of(warp)[r * kSumStride + column];
      out.data[this->query_row(tile_.first + r) * out.row + head_ * out.head + c + column] = static_cast<T>(sum);
    }
  }
  /// A warp's buffers of keys, for other use.
  LACUNA_DEVICE float* floats_of(int warp) const { return reinterpret_cast<float*>(memory_.ring + int64_t{warp} * 2 * memory_.kRing); }

  // --- keys ---

  /// use(group, n, part, rows) for each of the warp's groups of keys, the n-th of its own, and for each part of so many, one after the
  /// other, once what load(group, part, rows) has begun to copy is there, while the next is on its way.
  template <class Load, class Use>
  LACUNA_DEVICE void for_each_group(int parts, bool only_weighted, Load load, Use use) const {
    const auto next_from = [&](int group) {
      while (only_weighted && group < tile_.end && !is_wanted(group)) group += block_.warps();
      return group;
    };
    const int first = first_group();
    int group = next_from(first), part = 0, buffer = 0;
    if (group < tile_.end) load(group, part, ring(buffer));
    while (group < tile_.end) {
      const bool is_last = part + 1 == parts;
      const int next = is_last ? next_from(group + block_.warps()) : group, next_part = is_last ? 0 : part + 1;
      if (next < tile_.end) {
        load(next, next_part, ring(1 - buffer));
        AsyncCopies::wait_for_all_but_the_last();
      } else {
        AsyncCopies::wait_for_all();
      }
      block_.sync_warp();
      use(group, (group - first) / block_.warps(), part, ring(buffer));
      block_.sync_warp();
      group = next;
      part = next_part;
      buffer = 1 - buffer;
    }
  }
  LACUNA_DEVICE bool is_wanted(int group) const { return !call_.sparse || memory_.flags[group - tile_.begin] != 0; }

  /// Begins to copy the part-th kColumns columns of a group's rows.
  LACUNA_DEVICE void read_group(const Matrix<const T>& from, int group, int part, T* to) const {
    const int c = kColumns * part, end = c + kColumns < call_.width ? c + kColumns : call_.width;
    this->read_rows(from, kKeyGroup, c, end, this->keys_from(kKeyGroup * group), to, kRightStride, block_.lane(), Block::kLanes);
    AsyncCopies::end_group();
  }

  // --- where things are ---

  LACUNA_DEVICE int columns() const { return (call_.width + kColumns - 1) / kColumns; }
  /// The warp's first group: which are whose does not depend on where the tile begins.
  LACUNA_DEVICE int first_group() const {
    const int warps = block_.warps();
    return tile_.begin + (block_.warp() + warps - tile_.begin % warps) % warps;
  }
  LACUNA_DEVICE int groups_of_warp(int groups) const { return (groups + block_.warps() - 1) / block_.warps(); }
  LACUNA_DEVICE T* ring(int buffer) const { return memory_.ring + (int64_t{block_.warp()} * 2 + buffer) * memory_.kRing; }

  const LongTile& tile_;
  const LongRowsMemory<T> memory_;
  const KeyRuns<Block> seen_;
  const TruthPerRow<Block> are_none_;
};

}  // namespace lacuna::cuda
