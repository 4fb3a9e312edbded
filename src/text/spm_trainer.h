#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/options.h"

namespace lacuna {

/// What a SentencePiece model is to be.
struct SpmTraining {
  int64_t vocab_size = 8000;
  SubwordType type = SubwordType::kUnigram;
  double character_coverage = 1.0;
  int64_t sample_lines = 2000000;
  uint64_t seed = 1;
  std::vector<std::string> symbols = {};  ///< pieces that it has whatever the text, each whole wherever it stands
  bool byte_fallback = false;             ///< spell uncovered characters in bytes, which are 256 pieces
};

/// Trains a SentencePiece model (Kudo and Richardson 2018, arXiv:1808.06226) on lines drawn evenly from text files (plain or gzip), in
/// order, and returns its bytes: the same for the same files and settings. Ids: unk 0, bos 1, eos 2, no padding. Throws DataError if the
/// text allows no vocabulary of that size, with the size that it allows.
std::string train_sentencepiece(const std::vector<std::string>& files, const SpmTraining& training);

}  // namespace lacuna
