#include "train/auto_batch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <fstream>

#include "base/error.h"
#include "base/resources.h"
#include "data/batch.h"
#include "model/transformer.h"

namespace lacuna {
namespace {

constexpr int64_t kSmallProbe = 1024, kLargeProbe = 4096;  ///< tokens
constexpr int64_t kLeastTokens = 256, kMostTokens = 32768;
constexpr double kUsedShare = 0.7;  ///< share of the free memory to use; the rest is for validation, the system and other processes

[[noreturn]] void refuse_to_measure(const std::string& why) {
  throw ConfigError("train.batch_tokens is auto, but memory cannot be measured here: " + why + "; say a number of tokens, such as 4096");
}

/// Runs forward and backward on `batch` and returns the process's peak memory so far, which grows with the batches.
uint64_t peak_after_step(const LossFunction& loss, const Batch& batch) {
  loss(batch, {.training = true}).backward();
  const std::optional<uint64_t> kibibytes = number_in_file("/proc/self/status", "VmHWM:");
  if (!kibibytes) refuse_to_measure("/proc/self/status does not say how much memory a step takes");
  return *kibibytes * 1024;
}

void reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  if (!(file << "5" << std::flush)) refuse_to_measure("/proc/self/clear_refs cannot be written");
}

}  // namespace

std::vector<int64_t> costly_lengths(int64_t longest) {
  return longest > kLongestWithKeptWeights ? std::vector{longest, kLongestWithKeptWeights} : std::vector{longest};
}

uint64_t available_memory() {
  const uint64_t available = number_in_file("/proc/meminfo", "MemAvailable:").value_or(0) * 1024;
  return std::min(available, memory_left().value_or(available));
}

MemoryFit fit_batch_to_memory(const LossFunction& loss, Optimizer& optimizer, int64_t sentence_length, const VocabularySizes& vocabulary,
                              uint64_t available) {
  const auto peak_of = [&](int64_t tokens, int64_t length) {
    return peak_after_step(
        loss, *random_batch({.tokens = tokens, .sentence_length = length, .src_pieces = vocabulary.src, .tgt_pieces = vocabulary.tgt}));
  };
  MemoryFit fit;
  fit.available = available;
  peak_of(kSmallProbe, sentence_length);  // makes the gradients, which stay while the others are measured
  reset_peak();
  const uint64_t small = peak_of(kSmallProbe, sentence_length);
  uint64_t large = 0;
  for (const int64_t length : costly_lengths(sentence_length)) large = peak_of(kLargeProbe, length);  // the highest so far
  optimizer.clear_gradients();
  fit.bytes_per_token = std::max<uint64_t>((large - small) / (kLargeProbe - kSmallProbe), 1024);
  const double tokens = kUsedShare * static_cast<double>(fit.available) / static_cast<double>(fit.bytes_per_token);
  fit.batch_tokens = std::clamp(static_cast<int64_t>(tokens), kLeastTokens, kMostTokens) / 256 * 256;
  return fit;
}

}  // namespace lacuna
