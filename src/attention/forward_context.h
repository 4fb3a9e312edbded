#pragma once

#include <cstdint>

#include "base/precision.h"

namespace lacuna {

class ActivationWatch;
class AlignmentGuide;
class AttentionProbe;
class Regularizer;

/// Settings of one forward pass, which every layer receives by reference.
struct ForwardContext {
  bool training = false;                   ///< dropout is on
  uint64_t seed = 0;                       ///< of the run; keys every dropout mask
  int64_t step = 0;                        ///< the optimizer update that this pass belongs to
  Precision precision = Precision::kFp32;  ///< of the factors of matrix products, in training
  Precision decoding = Precision::kFp32;   ///< of the factors of products without gradients, on a GPU
  AttentionProbe* probe = nullptr;         ///< sees every attention weight; null = none
  Regularizer* regularizer = nullptr;      ///< gathers what layers add to the loss; null = they add nothing
  AlignmentGuide* guide = nullptr;         ///< what teaches a head of cross attention to align; null = nothing
  ActivationWatch* watch = nullptr;        ///< sees what layers compute (model/activation_watch.h); null = none
};

}  // namespace lacuna
