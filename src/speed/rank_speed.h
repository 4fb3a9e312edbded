#pragma once

#include <nlohmann/json.hpp>

#include "ranks/group.h"
#include "speed/training_speed.h"

namespace lacuna {

/// Measures the ranks of `group` on a corpus: the same updates without others, together, and together with the exchange after the backward
/// pass, in turn; and the exchange alone, with the rate and the price of its messages. Returns, at rank 0, medians, means over ranks, the
/// bytes that a rank sends, and "estimates" for more ranks and other networks (scaling.h). Collective.
nlohmann::ordered_json rank_speed(const Options& options, const TimedUpdates& updates, Group& group);

}  // namespace lacuna
