#include "train/auto_batch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <fstream>

#include "base/control_group.h"
#include "base/error.h"
#include "base/number_in_file.h"
#include "data/random_batch.h"

namespace lacuna {
namespace {

constexpr int64_t kSmallProbe = 1024, kLargeProbe = 4096;  ///< tokens
constexpr int64_t kLeastTokens = 256, kMostTokens = 32768;
constexpr double kUsedShare = 0.7;  ///< of the free memory; the rest is for validation, the system and others

[[noreturn]] void refuse_to_measure(const std::string& why) {
  throw ConfigError("train.batch_tokens is auto, but memory cannot be measured here: " + why + "; say a number of tokens, such as 4096");
}

/// The most memory this process has taken so far, once a step on `batch` is done. Rising batches give rising peaks, whatever the allocator
/// keeps for itself.
uint64_t peak_after_step(const LossFunction& loss, const Batch& batch) {
  loss(batch, {.training = true}).backward();
  const std::optional<uint64_t> kibibytes = number_in_file("/proc/self/status", "VmHWM:");
  if (!kibibytes) refuse_to_measure("/proc/self/status does not say how much memory a step takes");
  return *kibibytes * 1024;
}

void begin_peak_anew() {
  std::ofstream file("/proc/self/clear_refs");
  if (!(file << "5" << std::flush)) refuse_to_measure("/proc/self/clear_refs cannot be written");
}

}  // namespace

std::vector<int64_t> costly_lengths(int64_t longest) {
  constexpr int64_t kMiddle = 128;  // attention keeps all weights of sentences up to here for the backward pass (kKeptKeys)
  return longest > kMiddle ? std::vector{longest, kMiddle} : std::vector{longest};
}

uint64_t available_memory() {
  const uint64_t available = number_in_file("/proc/meminfo", "MemAvailable:").value_or(0) * 1024;
  return std::min(available, memory_left().value_or(available));
}

MemoryFit fit_batch_to_memory(const LossFunction& loss, Optimizer& optimizer, int64_t sentence_length, const VocabularySizes& vocabulary) {
  const auto peak_of = [&](int64_t tokens, int64_t length) {
    return peak_after_step(
        loss, *random_batch({.tokens = tokens, .sentence_length = length, .src_pieces = vocabulary.src, .tgt_pieces = vocabulary.tgt}));
  };
  MemoryFit fit;
  fit.available = available_memory();
  peak_of(kSmallProbe, sentence_length);  // makes the gradients, which stay while the others are measured
  begin_peak_anew();
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
