#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace lacuna {

/// The mean of the weights of several checkpoints (those that translate: moving averages where a run keeps them), summed in double
/// precision. Configuration and vocabularies are the last one's; the step, which an annealed calibration goes by, is the
/// largest; `info.averaged_from` names them all.
///
/// Throws CheckpointError naming two checkpoints and their first difference if they do not fit together: other vocabularies, another
/// `model` section, other names or shapes of weights.
CheckpointContents average_checkpoints(const std::vector<std::string>& paths);

}  // namespace lacuna
