#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/call.h"

namespace lacuna {

/// Queries of one sentence and head that are shown the same keys (AttentionPattern::group), as an attention of their own: the keys can be
/// gathered side by side, and each query sees a run of them. (Of every fourth query, which sees every fourth key, that makes full attention
/// in a sentence a quarter as long.)
struct AttentionPart {
  int32_t first_query, query_step, num_queries;  // of the sentence's queries
  std::vector<int32_t> keys;                     // positions, ascending
  std::vector<KeySegment> segments;              // over `keys`: of query i first_segment[i] to first_segment[i + 1], at most one
  std::vector<int32_t> first_segment;
};

/// The parts of sentence b; each of its queries is in one of them. Empty if the parts would hold few queries each: gathering their keys
/// would cost more than it saves. reach [queries]: how far each query may look at most; empty = as far as the pattern lets it.
std::vector<AttentionPart> attention_parts(const AttentionCall& call, int64_t b, int64_t head, std::span<const int32_t> reach = {});

/// True if the core is likely to take some queries of sentence b in tiles (core_cpu.h), and not all of them in parts or as lists. A guess
/// from the pattern alone: of queries that reach less far, or with products of bf16, the core may decide otherwise. If the last query sees
/// one run of keys, all are taken to do so.
bool goes_in_tiles(const AttentionCall& call, int64_t b, int64_t head);

}  // namespace lacuna
