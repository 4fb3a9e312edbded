#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/sentence_pairs.h"
#include "base/output.h"
#include "checkpoint/checkpoint.h"
#include "config/options.h"

namespace lacuna {

/// What `lacuna score` prints of a text.
struct ScoreRequest {
  std::string src, tgt, output = "-";
  bool tokens = false, json = false, normalize = false, guard = false;
  OnBadLine bad_lines = OnBadLine::kStop;
  int64_t batch_tokens = 3000;
  std::optional<int64_t> most_pairs = {};  ///< of a text in parts: scores so many, if there are, and keeps no partial output
  std::function<void()> look = {};         ///< called before pairs are read; it may throw to end the work
};

/// How much of a text was scored.
struct ScoredText {
  int64_t pairs = 0, bad_pairs = 0;  ///< all of them, and those that were passed over
  bool is_read = true;               ///< false if nobody reads the output any more
};

/// Opens the two files of `asked` as pairs that the models can read.
void open_pairs(std::optional<PairReader>& reader, const std::vector<LoadedModel>& models, const ScoreRequest& asked);

/// Writes the log-probabilities, in nats, that the models give to the targets that are left, a line a pair, and warns of each bad pair that
/// is passed over. Throws LineError for one that is not, such as a side that is longer than the models can read, after the pairs before it
/// are written; a file is then kept as a partial one.
ScoredText score_text(PairReader& reader, Output& output, const std::vector<LoadedModel>& models, const ScoreRequest& asked);

}  // namespace lacuna
