#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "config/options.h"

namespace lacuna {

/// What `lacuna score` prints of a text.
struct ScoreRequest {
  std::string src, tgt, output = "-";
  bool tokens = false, json = false, normalize = false, guard = false;
  OnBadLine bad_lines = OnBadLine::kStop;
  int64_t batch_tokens = 3000;
};

/// How much of a text was scored.
struct ScoredText {
  int64_t pairs = 0, bad_pairs = 0;  ///< all of them, and those that were passed over
  bool is_read = true;               ///< false if nobody reads the output any more
};

/// Writes the log-probabilities, in nats, that the models give to the targets, a line a pair, and warns of each bad pair that is passed
/// over. Throws LineError for one that is not, such as a side that is longer than the models can read, after the pairs before it are
/// written; a file is then kept as a partial one.
ScoredText score_text(const std::vector<LoadedModel>& models, const ScoreRequest& asked);

}  // namespace lacuna
