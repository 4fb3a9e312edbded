#pragma once

#include <vector>

#include "attention/call.h"
#include "attention/gpu/kernels.h"

namespace lacuna::cuda {

/// Returns `elements` rounded up to a multiple of kTile.
inline int32_t whole_tiles(int64_t elements) {
  return static_cast<int32_t>((elements + kTile - 1) / kTile * kTile);
}

/// Short sentences that one kernel works on.
struct ShortLaunch {
  int width;                                      ///< one of kShortWidths
  int first, count;                               ///< of ScheduleLists::short_sentences
  int warps = 0;                                  ///< of a block
  int64_t forward_bytes = 0, backward_bytes = 0;  ///< of shared memory that a block needs
};

/// Tiles of long rows that one kernel works on.
struct LongLaunch {
  int groups;                                             ///< of keys that the widest tile sees, rounded up
  int first = 0, count = 0;                               ///< of ScheduleLists::long_tiles
  int64_t forward_bytes = 0, backward_bytes = 0;          ///< of shared memory that a block needs
  int64_t forward_row_bytes = 0, backward_row_bytes = 0;  ///< of the device's memory, each block; 0: rows lie in shared memory
};

/// A BlockSchedule in host memory, for the heads of a call that share one pattern. It depends on shapes, pattern and options alone, and its
/// entries for a sentence on that sentence alone.
struct ScheduleLists {
  std::vector<SentenceTask> tasks;
  std::vector<QueryTile> tiles;
  std::vector<Chunk> chunks;
  std::vector<KeySegment> segments;
  std::vector<int32_t> first_segment, key_positions, heads;
  std::vector<ShortSentence> short_sentences;  ///< the others are tasks
  std::vector<ShortLaunch> short_launches;
  std::vector<int32_t> flash_sentences;  ///< those that flash attention takes
  std::vector<LongSentence> long_sentences;
  std::vector<LongTile> long_tiles;
  std::vector<LongKeys> long_keys;
  std::vector<LongLaunch> long_launches;
  int num_long_blocks = 0;      ///< BlockSchedule::num_long_blocks
  int64_t long_keys_bytes = 0;  ///< of shared memory that a block of long_keys needs
  int num_partials = 0;
  int warps = kWarps;                                     ///< of a block
  int64_t forward_bytes = 0, backward_bytes = 0;          ///< of shared memory that a block needs
  int64_t forward_row_bytes = 0, backward_row_bytes = 0;  ///< of the device's memory; 0: the tasks are not long
  bool writes_every_key = false;                          ///< each row of k belongs to a sentence that is no task
};

/// The facts that decide, beside its size, how much shared memory a task needs.
struct MemoryRules {
  int d_head;
  bool needs_scores, uses_positions;
  bool in_bf16;
  bool wants_gradients;         ///< there will be a backward pass, which needs more
  int64_t limit;                ///< bytes
  bool has_short_rows = false;  ///< there are kernels for short sentences
  bool has_long_rows = false;   ///< and for long ones
  bool has_flash = false;       ///< flash attention takes such calls

  bool operator==(const MemoryRules&) const = default;
};

/// Makes a schedule for each pattern of the call, and one more for its long tasks, if there are any. Throws MachineError if heads are too
/// wide for a block's memory.
std::vector<ScheduleLists> make_schedules(const AttentionCall& call, const MemoryRules& rules);

/// The partial rows that belong to each row of k: BlockSchedule::first_source and BlockSchedule::sources.
struct Sources {
  std::vector<int32_t> first, rows;
};
Sources find_sources(const ScheduleLists& schedule, const KeyRange& keys, int64_t num_key_rows);

}  // namespace lacuna::cuda
