#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace lacuna {

/// Returns a checkpoint whose weights are the mean of those that translate in several checkpoints (their moving
/// averages where the run keeps them), summed in double precision. Configuration and vocabularies are those of the last
/// path; the step, which an annealed share depends on, is the largest; `info.averaged_from` lists the paths.
///
/// Throws CheckpointError naming two checkpoints and their first difference if their vocabularies, their `model`
/// sections, or the names or shapes of their weights differ.
CheckpointContents average_checkpoints(const std::vector<std::string>& paths);

}  // namespace lacuna
