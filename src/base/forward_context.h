#pragma once

#include <cstdint>

#include "base/factor_precision.h"

namespace lacuna {

class AttentionProbe;
struct MaskPass;
class Regularizer;

/// What a layer must know about the moment. Travels by reference through every forward pass.
struct ForwardContext {
  bool training = false;  ///< dropout on
  uint64_t seed = 0;      ///< of the run: keys every dropout mask
  int64_t step = 0;       ///< the optimizer update that this pass belongs to
  FactorPrecision precision = FactorPrecision::kFp32;
  int pass = 0;                        ///< 0 the usual one; 1 the mask pass over the same batch (attention/types/calibrated.h)
  AttentionProbe* probe = nullptr;     ///< sees every attention weight (attention/probe.h); null = nobody looks
  MaskPass* masks = nullptr;           ///< mask pass: gathers what the masks come to (attention/mask_pass.h)
  Regularizer* regularizer = nullptr;  ///< takes what layers add to the loss (model/regularizer.h); null = nothing is to be added

  bool is_mask_pass() const { return pass == 1; }
};

}  // namespace lacuna
