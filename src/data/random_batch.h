#pragma once

#include <cstdint>
#include <memory>

#include "data/batch.h"

namespace lacuna {

/// Settings of sentence pairs of random tokens, equally long on both sides. Tokens and lengths include eos.
struct RandomBatch {
  int64_t tokens = 0;                      ///< tokens of each side; the last sentence is shorter if they do not divide evenly
  int64_t sentence_length = 0;             ///< at least 1
  int64_t src_pieces = 0, tgt_pieces = 0;  ///< vocabulary sizes, more than unk, bos and eos
  uint64_t seed = 1;
};
std::shared_ptr<const Batch> random_batch(const RandomBatch& wanted);

}  // namespace lacuna
