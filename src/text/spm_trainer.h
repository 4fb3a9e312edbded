#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/options.h"

namespace lacuna {

/// Settings of a SentencePiece model, from a configuration or its defaults.
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
  std::vector<std::string> symbols;  ///< user-defined symbols: always pieces, and never split
  bool byte_fallback;                ///< spell uncovered characters by 256 byte pieces
};

/// A text to train on.
struct SpmText {
  std::string name;  ///< in messages
  /// Calls `use` with every line, in order.
  std::function<void(const std::function<void(const std::string& line)>& use)> read;
};

/// Returns a file, plain, gzip or zstd, as a text. `read` throws DataError for a line that is not UTF-8 or holds a NUL.
SpmText text_file(const std::string& file);

/// Trains a SentencePiece model (Kudo and Richardson 2018, arXiv:1808.06226) on lines drawn uniformly from all texts,
/// and returns its bytes, which are a function of lines and settings. Ids: unk 0, bos 1, eos 2, no padding. Throws
/// DataError if the texts allow no vocabulary of that size, with the largest possible size.
std::string train_sentencepiece(const std::vector<SpmText>& texts, const SpmTraining& training);
/// Trains a SentencePiece model on text files.
std::string train_sentencepiece(const std::vector<std::string>& files, const SpmTraining& training);

}  // namespace lacuna
