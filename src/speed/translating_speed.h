#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "search/translator.h"
#include "speed/timing.h"

/// Timing of translating a text.
namespace lacuna {

/// Returns output tokens and sentences per second, medians over `rounds` of the whole text, and on the CPU the share of matrix products.
/// With `has_profile` (GPUs only), "profile" has what the GPU does in one more round (gpu_trace.h).
nlohmann::ordered_json translating_speed(const LoadedModel& loaded, const std::vector<TranslationInput>& lines, int64_t rounds,
                                         bool has_profile);

/// Lines that are not blank, and the mean number of their tokens, eos included.
struct Sources {
  double mean_length = 0;
  std::vector<TranslationInput> lines;
};
Sources sources_with_text(const std::vector<TranslationInput>& lines, const Vocabulary& vocabulary);

/// Compares the loaded model with each attention of `compared` and with the first of them, softmax. Returns "comparisons" (timing.h) of
/// `pairs` pairs. In each pair both translate all sources, with `length` tokens per translation.
nlohmann::ordered_json translating_comparisons(const LoadedModel& loaded, const std::vector<NamedOptions>& compared, const Sources& sources,
                                               int64_t length, int64_t pairs);

}  // namespace lacuna
