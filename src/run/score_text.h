#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace lacuna {

/// What `lacuna score` prints of a text.
struct ScoreRequest {
  std::string src, tgt, output = "-";
  bool tokens = false, json = false, normalize = false;
  int64_t batch_tokens = 3000;
};

/// Writes the log-probabilities, in nats, that the models give to the targets, a line a pair. Returns false if nobody reads the output any
/// more. Throws DataError for a side that is longer than the models can read.
bool score_text(const std::vector<LoadedModel>& models, const ScoreRequest& asked);

}  // namespace lacuna
