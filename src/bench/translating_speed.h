#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/named_options.h"
#include "checkpoint/checkpoint.h"
#include "search/translator.h"

/// A model on a text, timed.
namespace lacuna {

/// Output tokens and sentences a second, medians over `rounds` of the whole text, and on the CPU the share of matrix products.
nlohmann::ordered_json translating_speed(const LoadedModel& loaded, const std::vector<TranslationInput>& lines, int64_t rounds);

/// Lines that hold something, and the mean number of their tokens, eos counted.
struct Sources {
  double mean_length = 0;
  std::vector<TranslationInput> lines;
};
Sources sources_with_text(const std::vector<TranslationInput>& lines, const Vocabulary& vocabulary);

/// The loaded model with each attention of `compared` against it with the first, softmax: "comparisons" (paired_seconds.h) of `pairs`
/// pairs. A pair is all sources translated with each, `length` tokens for each of them.
nlohmann::ordered_json translating_comparisons(const LoadedModel& loaded, const std::vector<NamedOptions>& compared, const Sources& sources,
                                               int64_t length, int64_t pairs);

}  // namespace lacuna
