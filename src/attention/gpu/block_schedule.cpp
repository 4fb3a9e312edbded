#include "attention/gpu/block_schedule.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "attention/cpu/parts.h"
#include "attention/gpu/flash.h"
#include "attention/gpu/long_rows_memory.h"
#include "attention/gpu/short_rows_memory.h"
#include "attention/registry.h"

namespace lacuna::cuda {
namespace {

/// The most chunks of a task, and the fewest tiles of a chunk: they bound the blocks that work on a sentence, and the partial rows of a key
/// that are added up.
constexpr size_t kMostChunks = 8, kFewestTiles = 2;

/// The keys of each query of a task: query i sees segments[first[i]] to segments[first[i + 1]].
struct Visible {
  std::vector<KeySegment> segments;
  std::vector<int32_t> first;

  bool has_gaps() const {
    for (size_t i = 0; i + 1 < first.size(); ++i)
      if (first[i + 1] - first[i] > 1) return true;
    return std::any_of(segments.begin(), segments.end(), [](const KeySegment& segment) { return segment.stride != 1; });
  }
};

Visible visible_in(const AttentionCall& call, int64_t b, int64_t head) {
  Visible visible = {.segments = {}, .first = {0}};
  std::vector<KeySegment> of_query;
  for (int32_t i = 0; i < call.queries->length(b); ++i) {
    visible_keys(call, b, head, query_position(call, b, i), of_query);
    visible.segments.insert(visible.segments.end(), of_query.begin(), of_query.end());
    visible.first.push_back(static_cast<int32_t>(visible.segments.size()));
  }
  return visible;
}

/// What a block needs of its shared memory, and of the device's.
struct BlockBytes {
  int64_t shared, rows;
};

template <class T>
BlockBytes block_bytes(const MemoryRules& rules, const SentenceTask& task, int warps, bool is_backward) {
  KernelCall<T> call = {};
  call.width = whole_tiles(rules.d_head);
  call.needs_scores = rules.needs_scores;
  call.uses_positions = rules.uses_positions;
  const SharedMemory<T> parts(nullptr, nullptr, call, task, 0, warps, is_backward);
  return {parts.bytes, parts.row_bytes};
}

BlockBytes block_bytes(const MemoryRules& rules, const SentenceTask& task, int warps, bool is_backward) {
  return rules.in_bf16 ? block_bytes<Bf16>(rules, task, warps, is_backward) : block_bytes<float>(rules, task, warps, is_backward);
}

/// The most warps of a block: so many that rows of some length fit beside the warps' own parts, with gaps or without. It depends on the
/// rules alone: the number decides in which order sums are added up, which must not depend on the rest of the batch.
int most_warps(const MemoryRules& rules) {
  constexpr int kUsefulKeys = 256;
  SentenceTask task = {};
  task.tile_rows = 1;
  task.has_gaps = 1;
  task.stride = kUsefulKeys + kStridePadding;
  int warps = kWarps;
  while (warps > 1 && block_bytes(rules, task, warps, rules.wants_gradients).shared > rules.limit) warps /= 2;
  return warps;
}

/// The warps that have keys to work on, kTile each. (More would add zeros to the sums, which changes nothing.)
int warps_for(const AttentionCall& call) {
  int32_t longest = 0;
  for (const int32_t count : call.keys->count) longest = std::max(longest, count);
  return longest <= kTile ? 1 : longest <= 2 * kTile ? 2 : kWarps;
}

/// Sentences whose rows lie in registers (short_rows.h): the one place that chooses between these kernels and those of tiles (kernel.h).
/// The choice depends on the sentence and the call's options, not on the rest of the batch.
class ShortSentences {
 public:
  ShortSentences(const AttentionCall& call, const MemoryRules& rules) : rules_(rules) {
    // Registers have no room for scores beside weights and gradients, and who owns a key writes its gradient alone.
    is_possible_ = rules.has_short_rows && !rules.needs_scores && !(rules.wants_gradients && shares_keys(*call.keys));
  }

  bool take(const ShortSentence& sentence) const {
    return is_possible_ && sentence.keys <= kMostShortKeys && bytes(sentence, kShortWarps, rules_.wants_gradients) <= rules_.limit;
  }

  /// Sorts the sentences of `lists` by the width of their rows, and adds a launch for each.
  void add_launches(ScheduleLists& lists) const {
    std::vector<ShortSentence>& sentences = lists.short_sentences;
    std::stable_sort(sentences.begin(), sentences.end(), [](const auto& a, const auto& b) { return width_of(a) < width_of(b); });
    for (size_t i = 0; i < sentences.size(); ++i) {
      const int width = width_of(sentences[i]);
      if (i == 0 || width != lists.short_launches.back().width)
        lists.short_launches.push_back({.width = width, .first = static_cast<int>(i), .count = 0});
      ShortLaunch& launch = lists.short_launches.back();
      ++launch.count;
      const int32_t rows = std::max({1, sentences[i].queries, rules_.wants_gradients ? sentences[i].keys : 0});
      launch.warps = std::max(launch.warps, std::min(kShortWarps, whole_tiles(rows) / kTile));
    }
    for (ShortLaunch& launch : lists.short_launches) {
      for (int i = launch.first; i < launch.first + launch.count; ++i) {
        const ShortSentence& sentence = sentences[static_cast<size_t>(i)];
        launch.forward_bytes = std::max(launch.forward_bytes, bytes(sentence, launch.warps, false));
        launch.backward_bytes = std::max(launch.backward_bytes, bytes(sentence, launch.warps, true));
      }
    }
  }

 private:
  static int width_of(const ShortSentence& sentence) {
    return *std::find_if(std::begin(kShortWidths), std::end(kShortWidths), [&](int width) { return sentence.keys <= width; });
  }

  int64_t bytes(const ShortSentence& sentence, int warps, bool is_backward) const {
    const int width = whole_tiles(rules_.d_head);
    return rules_.in_bf16 ? ShortRowsMemory<Bf16>(nullptr, width, sentence, 0, warps, is_backward).bytes
                          : ShortRowsMemory<float>(nullptr, width, sentence, 0, warps, is_backward).bytes;
  }

  const MemoryRules& rules_;
  bool is_possible_;
};

/// Sentences whose rows are long (long_rows.h). Which are depends on the sentence and the call's options, not on the rest of the batch.
class LongSentences {
 public:
  LongSentences(const AttentionCall& call, const MemoryRules& rules) : rules_(rules) {
    // Rows together have no scores (BackwardNeedsScores), and who owns a key writes its gradient alone.
    is_possible_ = rules.has_long_rows && !rules.needs_scores && !(rules.wants_gradients && shares_keys(*call.keys));
  }

  bool take(const Visible& visible) const {
    return is_possible_ && !visible.has_gaps() && bytes(1, rules_.wants_gradients).shared <= rules_.limit &&
           (!rules_.wants_gradients || keys_bytes() <= rules_.limit);
  }

  /// Adds a sentence to `lists`, its tiles, and its keys.
  static void add(LongSentence sentence, const Visible& visible, ScheduleLists& lists) {
    const auto index = static_cast<int32_t>(lists.long_sentences.size());
    const int32_t tiles = whole_tiles(sentence.queries) / kTile, groups = (sentence.keys + kKeyGroup - 1) / kKeyGroup;
    sentence.first_block = lists.num_long_blocks;
    lists.num_long_blocks += tiles * groups;
    const size_t first_keys = lists.long_keys.size();
    for (int32_t first = 0; first < sentence.keys; first += kLongKeys) lists.long_keys.push_back({index, first, tiles, 0});
    for (int32_t tile = 0; tile < tiles; ++tile) {
      const auto [begin, end] = keys_of(visible, kTile * tile, std::min(kTile * (tile + 1), sentence.queries));
      for (int32_t i = begin / kLongKeys; kLongKeys * i < end; ++i) {
        LongKeys& keys = lists.long_keys[first_keys + static_cast<size_t>(i)];
        keys.begin = std::min(keys.begin, tile);
        keys.end = tile + 1;
      }
      lists.long_tiles.push_back(
          {index, kTile * tile, begin / kKeyGroup, std::max(begin / kKeyGroup + 1, (end + kKeyGroup - 1) / kKeyGroup)});
    }
    lists.long_sentences.push_back(sentence);
  }

  /// Sorts the tiles of `lists` by the width of their sentence's, and adds a launch for each width.
  void add_launches(ScheduleLists& lists) const {
    if (lists.long_sentences.empty()) return;
    std::vector<int> widths(lists.long_sentences.size(), 0);
    for (const LongTile& tile : lists.long_tiles) {
      int& width = widths[static_cast<size_t>(tile.sentence)];
      width = std::max(width, rounded(tile.end - tile.begin));
    }
    const auto width_of = [&](const LongTile& tile) { return widths[static_cast<size_t>(tile.sentence)]; };
    std::stable_sort(lists.long_tiles.begin(), lists.long_tiles.end(),
                     [&](const auto& a, const auto& b) { return width_of(a) < width_of(b); });
    for (size_t i = 0; i < lists.long_tiles.size(); ++i) {
      const int width = width_of(lists.long_tiles[i]);
      if (i == 0 || width != lists.long_launches.back().groups) {
        const BlockBytes forward = bytes(width, false), backward = bytes(width, true);
        lists.long_launches.push_back({.groups = width,
                                       .first = static_cast<int>(i),
                                       .forward_bytes = forward.shared,
                                       .backward_bytes = backward.shared,
                                       .forward_row_bytes = forward.rows,
                                       .backward_row_bytes = backward.rows});
      }
      ++lists.long_launches.back().count;
    }
    lists.long_keys_bytes = keys_bytes();
  }

 private:
  /// Returns so many groups or some more: 8, 12, 16, 24, ... With fewer than 8, a block's memory hardly shrinks.
  static int rounded(int groups) {
    int width = 8;
    while (width < groups) width += width % 3 == 0 ? width / 3 : width / 2;
    return width;
  }

  /// The range of keys that any of some queries sees; empty = {0, 0}.
  static std::pair<int32_t, int32_t> keys_of(const Visible& visible, int32_t first, int32_t last) {
    int32_t begin = std::numeric_limits<int32_t>::max(), end = 0;
    for (int32_t s = visible.first[static_cast<size_t>(first)]; s < visible.first[static_cast<size_t>(last)]; ++s) {
      const KeySegment& keys = visible.segments[static_cast<size_t>(s)];
      begin = std::min(begin, keys.begin);
      end = std::max(end, keys.begin + keys.count);
    }
    return {end > 0 ? begin : 0, end};
  }

  /// Returns what a block needs for a tile that sees so many groups of keys: its rows lie in shared memory if they fit.
  BlockBytes bytes(int groups, bool is_backward) const {
    const BlockBytes all = bytes(groups, is_backward, /*keeps_rows_outside=*/false);
    return all.shared <= rules_.limit ? all : bytes(groups, is_backward, /*keeps_rows_outside=*/true);
  }
  BlockBytes bytes(int groups, bool is_backward, bool keeps_rows_outside) const {
    const auto of = [&]<class T>(T /*type*/) -> BlockBytes {
      const LongRowsMemory<T> memory(nullptr, nullptr, keeps_rows_outside, whole_tiles(rules_.d_head), groups, kLongWarps, is_backward);
      return {memory.bytes, memory.row_bytes};
    };
    return rules_.in_bf16 ? of(Bf16(0.f)) : of(0.f);
  }

  int64_t keys_bytes() const {
    const int width = whole_tiles(rules_.d_head);
    return rules_.in_bf16 ? LongKeysMemory<Bf16>(nullptr, width, 0, kLongWarps).bytes
                          : LongKeysMemory<float>(nullptr, width, 0, kLongWarps).bytes;
  }

  const MemoryRules& rules_;
  bool is_possible_;
};

class Scheduler {
 public:
  Scheduler(const AttentionCall& call, const MemoryRules& rules, std::vector<int32_t> heads)
      : call_(call),
        rules_(rules),
        head_(heads.front()),
        most_warps_(most_warps(rules)),
        short_(call, rules),
        long_sentences_(call, rules) {
    long_.heads = heads;
    lists_.heads = std::move(heads);
    long_.warps = lists_.warps = std::min(most_warps_, warps_for(call));
  }

  /// Appends the schedule of all tasks that are not long, and then that of the others, if there are any.
  void append_to(std::vector<ScheduleLists>& schedules) {
    const int64_t sentences = call_.queries->num_sentences();
    for (int64_t b = 0; b < sentences; ++b) add_sentence(b);
    short_.add_launches(lists_);
    long_sentences_.add_launches(lists_);
    const size_t no_tasks = lists_.short_sentences.size() + lists_.long_sentences.size() + lists_.flash_sentences.size();
    const bool has_no_tasks = static_cast<int64_t>(no_tasks) == sentences;
    lists_.writes_every_key = has_no_tasks && covers_in_order(*call_.keys, call_.k.size(0));
    schedules.push_back(std::move(lists_));
    if (!long_.tasks.empty()) schedules.push_back(std::move(long_));
  }

 private:
  void add_sentence(int64_t b) {
    if (rules_.has_flash && flash_takes_sentence(call_, b)) return lists_.flash_sentences.push_back(static_cast<int32_t>(b));
    const Visible visible = visible_in(call_, b, head_);
    const bool may_part = visible.has_gaps() && call_.keys->slots.empty() && !call_.rows_alike;
    const auto parts = may_part ? attention_parts(call_, b, head_) : std::vector<AttentionPart>();
    if (!parts.empty()) {  // each reads its own keys alone
      for (const AttentionPart& part : parts) add_part(task_of(b), part);
    } else if (!add_short_sentence(b, visible) && !add_long_sentence(b, visible) && call_.queries->length(b) > 0) {
      add_task(task_of(b), visible, {});
    }
  }

  /// Returns false if the sentence is not one for rows in registers.
  bool add_short_sentence(int64_t b, const Visible& visible) {
    const ShortSentence sentence = {.sentence_id = call_.queries->id(b),
                                    .first_query = call_.queries->begin(b),
                                    .queries = call_.queries->length(b),
                                    .first_position = query_position(call_, b, 0),
                                    .first_key = call_.keys->begin[static_cast<size_t>(b)],
                                    .keys = call_.keys->count[static_cast<size_t>(b)],
                                    .first_segment = static_cast<int32_t>(lists_.first_segment.size())};
    if (!short_.take(sentence)) return false;
    add_segments(visible, lists_);
    lists_.short_sentences.push_back(sentence);
    return true;
  }

  /// Returns false if the sentence is not one for long rows.
  bool add_long_sentence(int64_t b, const Visible& visible) {
    if (!long_sentences_.take(visible)) return false;
    const LongSentence sentence = {.sentence_id = call_.queries->id(b),
                                   .first_query = call_.queries->begin(b),
                                   .queries = call_.queries->length(b),
                                   .first_position = query_position(call_, b, 0),
                                   .first_key = call_.keys->begin[static_cast<size_t>(b)],
                                   .keys = call_.keys->count[static_cast<size_t>(b)],
                                   .first_segment = static_cast<int32_t>(lists_.first_segment.size()),
                                   .first_block = 0};
    add_segments(visible, lists_);
    LongSentences::add(sentence, visible, lists_);
    return true;
  }

  static void add_segments(const Visible& visible, ScheduleLists& lists) {
    for (const int32_t first : visible.first) lists.first_segment.push_back(first + static_cast<int32_t>(lists.segments.size()));
    lists.segments.insert(lists.segments.end(), visible.segments.begin(), visible.segments.end());
  }

  SentenceTask task_of(int64_t b) const {
    SentenceTask task = {};
    task.sentence_id = call_.queries->id(b);
    task.first_query = call_.queries->begin(b);
    task.query_step = 1;
    task.first_position = query_position(call_, b, 0);
    task.keys = call_.keys->count[static_cast<size_t>(b)];
    task.first_key = call_.keys->begin[static_cast<size_t>(b)];
    task.key_positions = -1;
    return task;
  }

  void add_part(SentenceTask task, const AttentionPart& part) {
    task.first_query += part.first_query;
    task.first_position += part.first_query;
    task.query_step = part.query_step;
    task.keys = static_cast<int32_t>(part.keys.size());
    add_task(task, {part.segments, part.first_segment}, part.keys);
  }

  /// key_positions: those of its keys, if they are not 0, 1, ...
  void add_task(SentenceTask task, const Visible& visible, const std::vector<int32_t>& key_positions) {
    task.has_gaps = visible.has_gaps() ? 1 : 0;
    std::vector<QueryTile> tiles = fitting_tiles(task, visible);
    ScheduleLists& lists = task.is_long != 0 ? long_ : lists_;
    for (QueryTile& tile : tiles) tile.task = static_cast<int32_t>(lists.tasks.size());
    if (!key_positions.empty()) task.key_positions = static_cast<int32_t>(lists.key_positions.size());
    lists.key_positions.insert(lists.key_positions.end(), key_positions.begin(), key_positions.end());
    task.first_segment = static_cast<int32_t>(lists.first_segment.size());
    add_segments(visible, lists);

    const BlockBytes forward = block_bytes(rules_, task, lists.warps, false), backward = block_bytes(rules_, task, lists.warps, true);
    lists.forward_bytes = std::max(lists.forward_bytes, forward.shared);
    lists.backward_bytes = std::max(lists.backward_bytes, backward.shared);
    lists.forward_row_bytes = std::max(lists.forward_row_bytes, forward.rows);
    lists.backward_row_bytes = std::max(lists.backward_row_bytes, backward.rows);
    add_chunks(tiles, std::max(kFewestTiles, (tiles.size() + kMostChunks - 1) / kMostChunks), lists);
    lists.tiles.insert(lists.tiles.end(), tiles.begin(), tiles.end());
    lists.tasks.push_back(task);
  }

  /// The task's tiles, of as many rows as fit into shared memory; notes these in the task. If not one fits, the task is a long one.
  std::vector<QueryTile> fitting_tiles(SentenceTask& task, const Visible& visible) const {
    for (task.tile_rows = kTile; task.tile_rows > 0; task.tile_rows /= 2) {
      std::vector<QueryTile> tiles = tiles_of(task, visible);
      if (fits(task, tiles)) return tiles;
    }
    task.tile_rows = kTile;
    task.is_long = 1;
    std::vector<QueryTile> tiles = tiles_of(task, visible);
    if (!fits(task, tiles))
      throw MachineError("attention: heads of " + std::to_string(rules_.d_head) + " columns are too wide for this GPU's shared memory (" +
                         std::to_string(rules_.limit) + " bytes a block); take more heads (model.num_heads), or the CPU (device: cpu)");
    return tiles;
  }

  /// Sets the task's stride; returns true if its block then has enough shared memory.
  bool fits(SentenceTask& task, const std::vector<QueryTile>& tiles) const {
    task.stride = kTile;
    for (const QueryTile& tile : tiles) task.stride = std::max(task.stride, tile.width);
    task.stride += kStridePadding;
    return block_bytes(rules_, task, most_warps_, rules_.wants_gradients).shared <= rules_.limit;
  }

  static std::vector<QueryTile> tiles_of(const SentenceTask& task, const Visible& visible) {
    std::vector<QueryTile> tiles;
    const auto queries = static_cast<int32_t>(visible.first.size()) - 1;
    for (int32_t first = 0; first < queries; first += task.tile_rows) {
      const int32_t rows = std::min(task.tile_rows, queries - first);
      const auto seen = visible.first.begin() + first;  // the first row's segments, then the next's
      int32_t begin = task.keys, end = 0;
      for (int32_t s = seen[0]; s < seen[rows]; ++s) {
        const KeySegment& keys = visible.segments[static_cast<size_t>(s)];
        begin = std::min(begin, keys.begin);
        end = std::max(end, keys.begin + (keys.count - 1) * keys.stride + 1);
      }
      begin = begin < end ? begin / kTile * kTile : 0;
      tiles.push_back({0, first, rows, begin, whole_tiles(std::max(end - begin, 0))});
    }
    return tiles;
  }

  static void add_chunks(const std::vector<QueryTile>& tiles, size_t tiles_of_chunk, ScheduleLists& lists) {
    for (size_t first = 0; first < tiles.size(); first += tiles_of_chunk) {
      const size_t last = std::min(tiles.size(), first + tiles_of_chunk);
      Chunk chunk = {.first_tile = static_cast<int32_t>(lists.tiles.size() + first),
                     .num_tiles = static_cast<int32_t>(last - first),
                     .begin = 0,
                     .end = 0,
                     .first_partial = lists.num_partials};
      for (size_t i = first; i < last; ++i) {
        if (tiles[i].width == 0) continue;
        chunk.begin = chunk.end == 0 ? tiles[i].begin : std::min(chunk.begin, tiles[i].begin);
        chunk.end = std::max(chunk.end, tiles[i].begin + tiles[i].width);
      }
      lists.num_partials += chunk.end - chunk.begin;
      lists.chunks.push_back(chunk);
    }
  }

  const AttentionCall& call_;
  const MemoryRules& rules_;
  const int64_t head_;
  const int most_warps_;  // what fits is judged with: whatever else is in the batch
  const ShortSentences short_;
  const LongSentences long_sentences_;
  ScheduleLists lists_, long_;
};

}  // namespace

std::vector<ScheduleLists> make_schedules(const AttentionCall& call, const MemoryRules& rules) {
  std::vector<const AttentionPattern*> patterns;
  std::vector<std::vector<int32_t>> heads;
  for (int32_t head = 0; head < call.q.size(1); ++head) {
    const AttentionPattern* pattern = &call.type->pattern(head);
    const auto known = static_cast<size_t>(std::find(patterns.begin(), patterns.end(), pattern) - patterns.begin());
    if (known == patterns.size()) {
      patterns.push_back(pattern);
      heads.emplace_back();
    }
    heads[known].push_back(head);
  }
  std::vector<ScheduleLists> schedules;
  schedules.reserve(heads.size());
  for (std::vector<int32_t>& some : heads) Scheduler(call, rules, std::move(some)).append_to(schedules);
  return schedules;
}

Sources find_sources(const ScheduleLists& schedule, const KeyRange& keys, int64_t num_key_rows) {
  const auto for_each = [&](auto use) {  // use(row of k, partial row)
    for (const Chunk& chunk : schedule.chunks) {
      const SentenceTask& task = schedule.tasks[static_cast<size_t>(schedule.tiles[static_cast<size_t>(chunk.first_tile)].task)];
      for (int32_t e = chunk.begin; e < std::min(chunk.end, task.keys); ++e) {
        const int32_t position = task.key_positions < 0 ? e : schedule.key_positions.begin()[task.key_positions + e];
        const int32_t place = task.first_key + position;
        const int32_t row = keys.slots.empty() ? place : keys.slots.begin()[place];
        use(static_cast<size_t>(row), chunk.first_partial + e - chunk.begin);
      }
    }
  };
  Sources sources;
  sources.first.assign(static_cast<size_t>(num_key_rows) + 1, 0);
  for_each([&](size_t row, int32_t) { ++sources.first[row + 1]; });
  for (size_t row = 0; row < static_cast<size_t>(num_key_rows); ++row) sources.first[row + 1] += sources.first[row];
  sources.rows.resize(static_cast<size_t>(sources.first.back()));
  std::vector<int32_t> next = sources.first;
  for_each([&](size_t row, int32_t partial) { sources.rows[static_cast<size_t>(next[row]++)] = partial; });
  return sources;
}

}  // namespace lacuna::cuda
