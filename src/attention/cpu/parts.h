#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/call.h"

namespace lacuna {

/// Queries of one sentence and head that see the same keys (AttentionPattern::group), as an attention of their own: of
/// the gathered keys, each query sees a run. (Every fourth key is all keys of a sentence a quarter as long.)
struct AttentionPart {
  int32_t first_query, query_step, num_queries;  // of the sentence's queries
  std::vector<int32_t> keys;                     // positions, ascending
  std::vector<KeySegment> segments;              // over `keys`: of query i first_segment[i] to first_segment[i + 1], at most one
  std::vector<int32_t> first_segment;
};

/// Returns the parts of sentence b; each of its queries is in one. Empty if they would hold few queries each: gathering
/// keys would cost more than it saves. reach [queries]: how far each may look; empty = as far as the pattern lets it.
std::vector<AttentionPart> attention_parts(const AttentionCall& call, int64_t b, int64_t head, std::span<const int32_t> reach = {});

}  // namespace lacuna
