#pragma once

#include <memory>
#include <utility>

#include "data/batch.h"

namespace lacuna {

using BatchPtr = std::shared_ptr<const Batch>;

/// A batch in two at the sentence border nearest to half of its target tokens: sentences keep their ids, and so their dropout. At least two
/// sentences.
std::pair<BatchPtr, BatchPtr> split_batch(const Batch& batch);

}  // namespace lacuna
