#pragma once

#include <cstdint>
#include <memory>

#include "data/batch.h"

namespace lacuna {

/// Sentence pairs of random tokens, as long on both sides. Tokens and lengths count eos.
struct RandomBatch {
  int64_t tokens = 0;                      ///< of each side; what whole sentences leave of them is a shorter one
  int64_t sentence_length = 0;             ///< at least 1
  int64_t src_pieces = 0, tgt_pieces = 0;  ///< of the vocabularies, which hold more than unk, bos and eos
  uint64_t seed = 1;
};
std::shared_ptr<const Batch> random_batch(const RandomBatch& wanted);

}  // namespace lacuna
