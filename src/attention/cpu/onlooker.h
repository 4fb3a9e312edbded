#pragma once

#include <vector>

#include "attention/call.h"
#include "attention/cpu/parts.h"
#include "attention/patterns/pattern.h"
#include "attention/probe.h"

/// Passes the rows of weights that the core shows on to a probe.
namespace lacuna {

/// A probe, and the sentence and head whose rows it is shown.
struct Onlooker {
  const AttentionCall& call;
  AttentionProbe& probe;
  int64_t sentence, head;
  const AttentionPart* part;  // null = the whole sentence
};

template <class S>
void show(const void* onlooker, int query, const S* weights, const KeySegment* segments, int num_segments) {
  const auto& [call, probe, sentence, head, part] = *static_cast<const Onlooker*>(onlooker);
  std::vector<int32_t> positions;
  append_positions({segments, static_cast<size_t>(num_segments)}, positions);
  if (part != nullptr) {
    for (int32_t& position : positions) position = part->keys[static_cast<size_t>(position)];
    query = part->first_query + query * part->query_step;
  }
  const std::vector<float> seen(weights, weights + positions.size());
  probe.see(call.layer, call.site, static_cast<int>(head), sentence, query_position(call, sentence, query), seen, positions);
}

/// For a type with a mask: shows the base's weights and the mask of a row. (Such a type is never run in parts.)
template <class S>
void show_mask(const void* onlooker, int query, const S* base, const S* mask, const KeySegment* segments, int num_segments) {
  const auto& [call, probe, sentence, head, part] = *static_cast<const Onlooker*>(onlooker);
  std::vector<int32_t> positions;
  append_positions({segments, static_cast<size_t>(num_segments)}, positions);
  const std::vector<float> original(base, base + positions.size()), masks(mask, mask + positions.size());
  probe.see_calibration(call.layer, call.site, static_cast<int>(head), sentence, query_position(call, sentence, query), original, masks,
                        positions);
}

}  // namespace lacuna
