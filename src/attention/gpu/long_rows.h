#pragma once

#include "attention/gpu/factors.h"
#include "attention/gpu/long_row.h"
#include "attention/gpu/long_rows_memory.h"
#include "attention/rows/dropout.h"

// Sentences of many keys. Scores come from products on tensor cores, and stay in the layout in which these leave them, each lane's elements
// in memory of its own. A type's own row map turns them into weights in passes over that memory: keys and values are each read once.
//
// Forward, a block works on 16 queries; its warps share the keys. What passes over a row have found, at most four numbers, is kept: with
// them the backward pass works the weights of any keys out again, without a pass (RecalledRow). It has two kernels. In the first, a block
// owns 16 queries, finds the sums that the gradients of their scores need, and the gradients of the queries. In the second, a warp owns 16
// keys, and sums their gradients over the queries, in order. So no sum depends on which block or warp comes first, or on what else is in
// the batch. Where none of 16 queries weighs any of 32 keys, neither kernel does anything.
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
    for_each_square(c, [&](int j) {
      Product::multiply_add(block_, left, Product::right(block_, rows + kTile * j, stride), sums + kOwnOfTile * j);
    });
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
      const T* const first = from.data + row * from.row + head_ * from.head;
      for (int column = c + worker % kWorkersOfRow * together; column < end; column += kWorkersOfRow * together) {
        const bool is_there = row >= 0 && column < call_.d_head;
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
  using typename Base::Layout, typename Base::Number, typename Base::Product;
  using Base::block_, Base::call_, Base::sentence_, Base::map_, Base::head_;
  using Base::kOwnOfGroup, Base::kOwnOfTile, Base::kRightStride, Base::kSquares, Base::kTilesOfGroup;
  using Base::read_queries, Base::thread, Base::threads, Base::query_of, Base::row_of, Base::clear;

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
    const int64_t of_warp = int64_t{groups_of_warp()} * kOwnOfGroup * Block::kLanes;
    return {reinterpret_cast<Number*>(rows) + block_.warp() * of_warp + block_.lane()};
  }
  LACUNA_DEVICE LongRow<Block> row(float* rows, ResultLog& log) const {
    const int first = first_group(), count = (tile_.end - first + block_.warps() - 1) / block_.warps();
    return {elements(rows), first, count > 0 ? count : 0, &seen_, memory_.joined, &log, &block_};
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
      for (int i = 0; i < kOwnOfGroup; ++i) scores.at(n, i) = select(are_none_, Number(0), sums[i] * Number(call_.scale));
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
        for (int i = 0; i < kOwnOfTile; ++i) own[i] = select(are_none_, Number(0), weights.at(n, kOwnOfTile * j + i));
        this->clear_unseen(seen_, key, own);
        LACUNA_UNROLL
        for (int i = 0; i < kOwnOfTile; ++i) {
          LACUNA_UNROLL
          for (int r = 0; r < Layout::kRows; ++r) has_weight = has_weight || own[i].of[r] != 0;
        }
        this->drop(tile_.first, key, own);
        LACUNA_UNROLL
        for (int i = 0; i < kOwnOfTile; ++i) weights.at(n, kOwnOfTile * j + i) = own[i];
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
    const LaneElements<Block> weights = elements(memory_.weights), gradient = elements(memory_.gradient),
                              scores = elements(call_.needs_scores ? memory_.scores : memory_.weights);
    const int parts = columns();
    Number numbers[kMaxNumbers], sums[kOwnOfGroup];
    const types::RowContext<Number> context = context_of(numbers, nullptr, /*is_recalled=*/true);
    for (int group = first_group(), n = 0; group < tile_.end; group += block_.warps(), ++n) {
      if (is_wanted(group)) continue;
      for (int i = 0; i < kOwnOfGroup; ++i) weights.at(n, i) = gradient.at(n, i) = Number(0);
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
          for (int i = 0; i < kOwnOfTile; ++i) {
            own[i] = own[i] * Number(call_.scale);
            if (call_.needs_scores) scores.at(n, kOwnOfTile * j + i) = own[i];
          }
          this->recall_weights(own, key, memory_.log, ResultLog::kStride, context);
          this->clear_unseen(seen_, key, own);
        } else {
          this->drop(tile_.first, key, own);
        }
        LACUNA_UNROLL
        for (int i = 0; i < kOwnOfTile; ++i)
          (is_of_keys ? weights : gradient).at(n, kOwnOfTile * j + i) = select(are_none_, Number(0), own[i]);
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
    types::run_backward(map_, call_.needs_scores ? row(memory_.scores, log) : weights, weights, gradient, context);
    store_number_gradients(number_gradients);
    block_.sync();
    for (int r = thread(); r < kTile; r += threads()) store_record(r);
    const LaneElements<Block> own = elements(memory_.gradient);
    for (int group = first_group(), n = 0; group < tile_.end; group += block_.warps(), ++n)
      for (int i = 0; i < kOwnOfGroup; ++i) {
        const int key = kKeyGroup * group + Layout::column(block_.lane(), i);
        own.at(n, i) = select(are_none_, Number(0), select(seen_.contain(key), own.at(n, i) * Number(call_.scale), Number(0)));
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
          for (int i = 0; i < kOwnOfTile; ++i) left[i] = own.at(n, kOwnOfTile * j + i);
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
    float* const to = sums_of(block_.warp());
    LACUNA_UNROLL
    for (int i = 0; i < kSquares * kOwnOfTile; ++i) {
      LACUNA_UNROLL
      for (int r = 0; r < Layout::kRows; ++r) to[Layout::row(block_.lane(), r) * kSumStride + Layout::column(block_.lane(), i)] = sums[i].of[r];
    }
  }
  LACUNA_DEVICE void write_sums(int c, const Matrix<T>& out) const {
    for (int i = thread(); i < kTile * kColumns; i += threads()) {
      const int r = i / kColumns, column = i % kColumns;
      if (tile_.first + r >= sentence_.queries || c + column >= call_.d_head) continue;
      float sum = 0;
      for (int warp = 0; warp < block_.warps(); ++warp) sum += sums_of(warp)[r * kSumStride + column];
      out.data[this->query_row(tile_.first + r) * out.row + head_ * out.head + c + column] = static_cast<T>(sum);
    }
  }
  LACUNA_DEVICE float* sums_of(int warp) const { return reinterpret_cast<float*>(memory_.ring + int64_t{warp} * 2 * memory_.kRing); }

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
  LACUNA_DEVICE int groups_of_warp() const { return (tile_.end - tile_.begin + block_.warps() - 1) / block_.warps(); }
  LACUNA_DEVICE T* ring(int buffer) const { return memory_.ring + (int64_t{block_.warp()} * 2 + buffer) * memory_.kRing; }

  const LongTile& tile_;
  const LongRowsMemory<T> memory_;
  const KeyRuns<Block> seen_;
  const TruthPerRow<Block> are_none_;
};

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
  }

 private:
  using Base = LongRowsBase<Map, T, Block>;
  using typename Base::Layout, typename Base::Number, typename Base::Product;
  using Base::block_, Base::call_, Base::sentence_, Base::map_, Base::head_;
  using Base::kOwnOfTile, Base::kSquares, Base::kLeftStride;

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
    Number weights[kOwnOfTile], gradient[kOwnOfTile], scores[kOwnOfTile], numbers[kMaxNumbers], number_gradients[kMaxNumbers] = {};
    types::RowContext<Number> context = context_of(records, first_query, numbers);
    context.number_gradients = number_gradients;  // the kernel that owns queries has them
    dots(memory_.queries(buffer), memory_.keys + own * memory_.stride, weights);
    LACUNA_UNROLL
    for (int i = 0; i < kOwnOfTile; ++i) scores[i] = weights[i] = weights[i] * Number(call_.scale);
    this->recall_weights(weights, first_key, records->of_weights, kStride, context);
    this->clear_unseen(seen, first_key, weights);
    dots(memory_.context_gradient(buffer), memory_.values + own * memory_.stride, gradient);
    this->drop(first_query, first_key, gradient);
    int next = 0;
    const auto row = [&](Number* data) {
      return RecalledRow<Block>{data, first_key, records->of_gradients, kStride, &next, kRowResults, &block_};
    };
    types::run_backward(map_, row(scores), row(weights), row(gradient), context);
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

/// The kernels for long rows: one of the forward pass, two of the backward pass.
enum class LongPass { kForward, kQueryGradients, kKeyGradients };

/// The work of a block: on the index-th tile or keys of a launch, for the head at `place` of the schedule.
template <LongPass kPass, class Map, class T, class Block>
LACUNA_DEVICE void long_block(const Map& map, const KernelCall<T>& call, const Block& block, int index, int place, unsigned char* memory) {
  if constexpr (kPass == LongPass::kKeyGradients) {
    const LongKeys keys = call.schedule.long_keys[index];
    const LongSentence sentence = call.schedule.long_sentences[keys.sentence];
    const LongKeysMemory<T> parts(memory, call.width, block.warp(), block.warps());
    LongKeyGradients<Map, T, Block>(map, call, block, sentence, place, keys, parts).run();
  } else {
    constexpr bool kIsBackward = kPass == LongPass::kQueryGradients;
    const LongTile tile = call.schedule.long_tiles[index];
    const LongSentence sentence = call.schedule.long_sentences[tile.sentence];
    const bool is_outside = call.row_memory != nullptr;
    unsigned char* const rows = is_outside ? call.row_memory + (int64_t{index} * call.schedule.num_heads + place) * call.row_bytes : nullptr;
    const LongRowsMemory<T> parts(memory, rows, is_outside, call.width, tile.end - tile.begin, call.needs_scores, block.warps(), kIsBackward);
    const LongQueries<Map, T, Block> queries(map, call, block, sentence, place, tile, parts);
    if constexpr (kIsBackward) {
      queries.backward();
    } else {
      queries.forward();
    }
  }
}

}  // namespace lacuna::cuda
