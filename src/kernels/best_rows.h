#pragma once

#include <cstdint>
#include <limits>

/// The kernel that finds the best tokens of rows of logits on a GPU, and its arguments; plain data, without LibTorch.
namespace lacuna::gpu {

/// The most tokens of a row that are found on a GPU.
inline constexpr int32_t kMostBest = 256;
/// Stands for a token of a row whose logits are not numbers; its log-probability is minus infinity.
inline constexpr int32_t kNoToken = std::numeric_limits<int32_t>::max();

/// Arguments of the kernel, in the GPU's memory. A log-probability is a logit less the logarithm of the row's sum of exp(logit).
struct BestRows {
  int64_t columns;
  const float* logits;     ///< [rows, columns]
  int32_t k;               ///< at most kMostBest and `columns`
  const int32_t* asked;    ///< [rows] a token of each row; null = none
  float* log_probs;        ///< [rows, k] best first; equal ones are ordered by the lower token
  int32_t* tokens;         ///< [rows, k]
  float* asked_log_probs;  ///< [rows]; not written if none is asked for
};

/// Finds the best tokens of all rows on the current GPU and on `stream`; returns null or an error message. A row's result depends on it
/// alone. In builds with CUDA.
const char* find_best_of_rows(const BestRows& args, int64_t rows, void* stream);

/// A form of that function.
using BestRowsFunction = decltype(&find_best_of_rows);

}  // namespace lacuna::gpu
