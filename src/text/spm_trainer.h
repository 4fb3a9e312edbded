#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/options.h"
#include "text/vocabulary.h"

namespace lacuna {

/// A text to train on.
struct SpmText {
  std::string name;  ///< in messages
  /// Calls `use` with every line, in order. Returns how many were passed over.
  std::function<int64_t(const std::function<void(const std::string& line)>& use)> read;
  bool is_target = false;  ///< normalized by data.tgt_normalization, not data.src_normalization
};

/// Returns a file, plain, gzip or zstd, as a text; a source is without the characters that sources lose (invisible_characters.h). `read`
/// throws LineError, which ends with `remedy`, for a bad line or, under OnBadLine::kSkip, warns of it and passes over it.
SpmText text_file(const std::string& file, Side side, OnBadLine bad_lines = OnBadLine::kStop, const std::string& remedy = "");

/// A SentencePiece model's file, and the lines of the texts that it was trained on.
struct TrainedSpm {
  std::string model;
  int64_t lines = 0, bad_lines = 0;  ///< all of them, and those that were passed over
};

/// Trains a SentencePiece model (Kudo and Richardson 2018, arXiv:1808.06226) by `options` on lines drawn uniformly from
/// all texts. Its bytes are a function of lines, options and seed. It has fewer pieces than data.vocab_size where the
/// texts give no more. Throws DataError if their characters alone are more, with that number.
std::string train_sentencepiece(const std::vector<SpmText>& texts, const DataOptions& options, uint64_t seed = 1);
/// train_sentencepiece() that counts lines.
TrainedSpm train_counting_lines(const std::vector<SpmText>& texts, const DataOptions& options, uint64_t seed = 1);
/// Trains a SentencePiece model on files of source text.
std::string train_sentencepiece(const std::vector<std::string>& files, const DataOptions& options, uint64_t seed = 1);

}  // namespace lacuna
