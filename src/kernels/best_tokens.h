#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/gpu/kernels.h"

namespace lacuna {

/// The best tokens of each row: [N * k], row by row, best first; equal log-probabilities are ordered by the lower token
/// id.
struct BestTokens {
  int64_t k = 0;
  std::vector<int32_t> tokens;
  std::vector<float> log_probs;
  std::vector<float> asked;  ///< [N] log-probability of the token asked for in each row; empty if none was
};

namespace gpu {

/// Returns true if find_best() takes logits on this device: on a GPU, or where kernels are emulated.
bool finds_best(at::Device device);
/// Finds the k best tokens of each row of logits [N, V], and one that is asked for, where the rows are: some bytes a row leave the GPU. k
/// is at most kMostBest and V. Waits for the GPU.
void find_best(const at::Tensor& logits, int64_t k, const std::vector<int32_t>& asked, BestTokens& best);

}  // namespace gpu
}  // namespace lacuna
