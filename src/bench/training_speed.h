#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/named_options.h"

/// Updates on a corpus, timed.
namespace lacuna {

/// How many updates are made, and on what.
struct TimedUpdates {
  std::string folder;  ///< where vocabulary and token cache are kept
  int64_t warmup = 0;  ///< updates before those that are timed
  int64_t timed = 0;
};

/// Target tokens a second, milliseconds an update, data wait, peak memory, and on the CPU the share of matrix products. With
/// `has_profile`, which is of the CPU, "profile" says where each millisecond goes.
nlohmann::ordered_json training_speed(const Options& options, const TimedUpdates& updates, bool has_profile);

/// Each of `compared` against its first, softmax, with models of their own that get the same batches: "comparisons" (paired_seconds.h) of
/// `updates.timed` pairs.
nlohmann::ordered_json training_comparisons(const std::vector<NamedOptions>& compared, const TimedUpdates& updates);

}  // namespace lacuna
