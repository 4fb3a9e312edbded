#pragma once

#include <cstdint>
#include <vector>

#include "train/trainer.h"

namespace lacuna {

/// What the measurement of `train.batch_tokens: auto` found.
struct MemoryFit {
  int64_t batch_tokens = 0;
  uint64_t bytes_per_token = 0;  ///< of activations and their gradients
  uint64_t available = 0;        ///< bytes that were free
};

/// `train.batch_tokens: auto`: as many tokens as fit the memory that is free, with a reserve, at most 32,768. Two batches of random tokens,
/// as long as sentences may be, are trained (and forgotten): the difference of their peaks is what a token costs.
MemoryFit fit_batch_to_memory(const LossFunction& loss, Optimizer& optimizer, int64_t sentence_length, const VocabularySizes& vocabulary);

/// Lengths of sentences, up to `longest`, one of which takes the most memory for its tokens: attention keeps the weights of the middle
/// ones.
std::vector<int64_t> costly_lengths(int64_t longest);

/// Bytes that this process may still take: of the machine, or of its control groups if that is less.
uint64_t available_memory();

}  // namespace lacuna
