#pragma once

#include <cstdint>
#include <vector>

#include "bench/named_options.h"
#include "model/transformer.h"
#include "train/split_batch.h"

/// What a token costs by the length of its sentence: what `lacuna bench lengths` measures.
namespace lacuna {

/// Microseconds for each target token of the batch, with each configuration: medians over `rounds`, in which they take turns. Every
/// configuration has a model of its own, which begins with its first weights.
using MicrosecondsPerToken = std::vector<double>;

/// Of updates on this one batch: forward, backward and optimizer.
MicrosecondsPerToken training_cost(const std::vector<NamedOptions>& all, const VocabularySizes& sizes, const BatchPtr& batch,
                                   int64_t rounds);

/// Of beam search on all sources at once. Every translation is made as long as its source.
MicrosecondsPerToken translating_cost(const std::vector<NamedOptions>& all, const VocabularySizes& sizes, const BatchPtr& batch,
                                      int64_t rounds);

}  // namespace lacuna
