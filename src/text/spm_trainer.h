#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/options.h"

namespace lacuna {

/// What a SentencePiece model is to be: what a configuration says, or its defaults.
struct SpmTraining {
  explicit SpmTraining(const DataOptions& data = {}, uint64_t seed_of_sample = 1)
      : vocab_size(data.vocab_size),
        type(data.spm_type),
        character_coverage(data.character_coverage),
        sample_lines(data.spm_sample_lines),
        seed(seed_of_sample),
        symbols(data.spm_symbols),
        byte_fallback(data.spm_byte_fallback) {}

  int64_t vocab_size;
  SubwordType type;
  double character_coverage;
  int64_t sample_lines;
  uint64_t seed;
  std::vector<std::string> symbols;  ///< pieces that it has whatever the text, each whole wherever it stands
  bool byte_fallback;                ///< spell uncovered characters in bytes, which are 256 pieces
};

/// Lines to train on.
struct SpmText {
  std::string name;  ///< in messages
  /// Gives `use` every line, in order.
  std::function<void(const std::function<void(const std::string& line)>& use)> read;
};

/// A file of them, plain, gzip or zstd. What is no clean text is a DataError of `read`.
SpmText spm_text_of(const std::string& file);

/// Trains a SentencePiece model (Kudo and Richardson 2018, arXiv:1808.06226) on lines drawn evenly from texts, in order, and returns its
/// bytes: the same for the same lines and settings. Ids: unk 0, bos 1, eos 2, no padding. Throws DataError if the text allows no vocabulary
/// of that size, with the size that it allows.
std::string train_sentencepiece(const std::vector<SpmText>& texts, const SpmTraining& training);
/// The same of text files.
std::string train_sentencepiece(const std::vector<std::string>& files, const SpmTraining& training);

}  // namespace lacuna
