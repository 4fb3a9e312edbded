#pragma once

#include <cstdint>
#include <vector>

#include "data/batch.h"
#include "model/transformer.h"
#include "speed/timing.h"

/// Costs per token by sentence length, which `lacuna-bench lengths` measures.
namespace lacuna {

/// Microseconds per target token of the batch with each configuration, medians over `rounds` in turn. Every configuration has a model of
/// its own with initial weights.
using MicrosecondsPerToken = std::vector<double>;

/// Returns the cost of updates on this batch: forward, backward and optimizer.
MicrosecondsPerToken training_cost(const std::vector<NamedOptions>& all, const VocabularySizes& sizes, const BatchPtr& batch,
                                   int64_t rounds);

/// Returns the cost of beam search on all sources of the batch at once, with translations as long as the sources.
MicrosecondsPerToken translating_cost(const std::vector<NamedOptions>& all, const VocabularySizes& sizes, const BatchPtr& batch,
                                      int64_t rounds);

}  // namespace lacuna
