#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "speed/timing.h"

/// Timing of updates on a corpus.
namespace lacuna {

/// The number of updates to time and their data.
struct TimedUpdates {
  std::string folder;  ///< folder of vocabulary and token cache
  int64_t warmup = 0;  ///< updates before those that are timed
  int64_t timed = 0;
};

/// Returns target tokens per second, milliseconds per update, data wait, peak memory, and on the CPU the share of matrix products. With
/// `has_profile`, "profile" has the time of each part of an update; on a GPU by a trace of a few more updates (gpu_trace.h).
nlohmann::ordered_json training_speed(const Options& options, const TimedUpdates& updates, bool has_profile);

/// Compares each of `compared` with the first of them, softmax: separate models on the same batches. Returns "comparisons" (timing.h) of
/// `updates.timed` pairs.
nlohmann::ordered_json training_comparisons(const std::vector<NamedOptions>& compared, const TimedUpdates& updates);

}  // namespace lacuna
