#pragma once

#include <memory>

#include "data/batch.h"
#include "data/batch_maker.h"

namespace lacuna {

/// Returns the stream of training batches from a position on. A background thread makes a few batches ahead; `next` rethrows its errors.
std::unique_ptr<BatchStream> make_batch_stream(BatchPlan plan, DataPosition start = {});

}  // namespace lacuna
