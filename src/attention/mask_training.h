#pragma once

#include <cstdint>

namespace lacuna {

/// How the mask model of an attention with a mask is trained (types/calibrated.h).
struct MaskTraining {
  double penalty = 0;   ///< factor of |1 - m|, the distance from a mask that changes nothing
  double loss_cap = 0;  ///< nats a token: the translation loss counts up to here
  int64_t every = 1;    ///< the mask pass runs in every `every`-th step
};

}  // namespace lacuna
