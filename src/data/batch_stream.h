#pragma once

#include <memory>

#include "data/batch.h"
#include "data/batch_maker.h"

namespace lacuna {

/// The stream of training batches from a position on. Batches are made by a background thread, a few ahead; what goes wrong there is thrown
/// by `next`.
std::unique_ptr<BatchStream> make_batch_stream(BatchPlan plan, DataPosition start = {});

}  // namespace lacuna
