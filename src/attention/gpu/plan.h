#pragma once

#include <vector>

#include "attention/call.h"
#include "attention/gpu/kernels.h"

namespace lacuna::cuda {

/// `elements` rounded up to a multiple of kTile.
inline int32_t whole_tiles(int64_t elements) {
  return static_cast<int32_t>((elements + kTile - 1) / kTile * kTile);
}

/// A Plan as it is made, for the heads of a call that share one pattern. It depends on shapes, pattern and options alone, and what it says
/// of a sentence on that sentence alone.
struct PlanLists {
  std::vector<Task> tasks;
  std::vector<Tile> tiles;
  std::vector<Chunk> chunks;
  std::vector<KeySegment> segments;
  std::vector<int32_t> first_segment, key_positions, heads;
  int num_partials = 0;
  int warps = kWarps;                             ///< of a block
  int64_t forward_bytes = 0, backward_bytes = 0;  ///< of shared memory that a block needs
  bool fits = true;                               ///< every row fits into the shared memory of a block
};

/// What decides how much shared memory a task needs, beside its size.
struct MemoryRules {
  int d_head;
  bool needs_scores, uses_positions;
  bool in_bf16;
  bool wants_gradients;  ///< there will be a backward pass, which needs more
  int64_t limit;         ///< bytes

  bool operator==(const MemoryRules&) const = default;
};

/// One plan for each pattern of the call. If a row is too long for the shared memory, throws MachineError where the rules want gradients;
/// otherwise the plan's `fits` is false.
std::vector<PlanLists> make_plans(const AttentionCall& call, const MemoryRules& rules);

/// Which partial rows belong to each row of k: Plan::first_source and Plan::sources.
struct Sources {
  std::vector<int32_t> first, rows;
};
Sources find_sources(const PlanLists& plan, const KeyRange& keys, int64_t num_key_rows);

}  // namespace lacuna::cuda
