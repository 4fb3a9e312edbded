#pragma once

#include <cstdint>
#include <vector>

#include "train/trainer.h"

namespace lacuna {

/// Result of the measurement for `train.batch_tokens: auto`.
struct MemoryFit {
  int64_t batch_tokens = 0;
  uint64_t bytes_per_token = 0;  ///< memory of activations and their gradients
  uint64_t available = 0;        ///< free memory, bytes
};

/// Chooses `train.batch_tokens: auto`: as many tokens as fit the free memory, with a reserve, at most 32,768. Measures
/// the memory of a token by forward and backward passes over random batches of two sizes, with sentences as long as the
/// configuration allows; the weights stay as they are. Throws ConfigError if the system does not report memory. `available` are the bytes
/// that this process may take.
MemoryFit fit_batch_to_memory(const LossFunction& loss, Optimizer& optimizer, int64_t sentence_length, const VocabularySizes& vocabulary,
                              uint64_t available);

/// Returns sentence lengths up to `longest`, one of which takes the most memory a token: attention keeps the weights of
/// sentences up to a middle length.
std::vector<int64_t> costly_lengths(int64_t longest);

/// Returns the bytes that this process may still allocate: the least of what is free and what its control groups allow.
uint64_t available_memory();

}  // namespace lacuna
