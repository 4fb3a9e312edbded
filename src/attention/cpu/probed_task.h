#pragma once

#include <span>
#include <vector>

#include "attention/cpu/parts.h"
#include "attention/probe.h"

namespace lacuna {

/// A probe, and the sentence and head whose rows of weights it is shown.
struct ProbedTask {
  AttentionProbe& probe;
  int layer;
  AttentionSite site;
  int64_t sentence, head;
  int32_t first_position;     // of the sentence's queries
  const AttentionPart* part;  // null = the whole sentence

  /// Shows it a row (core::Task::show); `probed` is a ProbedTask.
  template <class S>
  static void show(const void* probed, int query, const S* weights, const KeySegment* segments, int num_segments) {
    const auto& [probe, layer, site, sentence, head, first_position, part] = *static_cast<const ProbedTask*>(probed);
    std::vector<int32_t> positions;
    append_positions({segments, static_cast<size_t>(num_segments)}, positions);
    if (part != nullptr) {
      for (int32_t& position : positions) position = part->keys[static_cast<size_t>(position)];
      query = part->first_query + query * part->query_step;
    }
    const std::vector<float> seen(weights, weights + positions.size());
    probe.see(layer, site, static_cast<int>(head), sentence, first_position + query, seen, positions);
  }
};

}  // namespace lacuna
