#pragma once

#include <memory>
#include <utility>

#include "data/batch.h"

namespace lacuna {

using BatchPtr = std::shared_ptr<const Batch>;

/// Splits a batch of at least two sentences at the sentence border nearest to half of its target tokens. Sentences keep
/// their ids, and so their dropout. Throws ShapeError for a batch of one sentence.
std::pair<BatchPtr, BatchPtr> split_batch(const Batch& batch);

}  // namespace lacuna
