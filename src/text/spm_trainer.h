#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/options.h"

namespace lacuna {

/// A text to train on.
struct SpmText {
  std::string name;  ///< in messages
  /// Calls `use` with every line, in order.
  std::function<void(const std::function<void(const std::string& line)>& use)> read;
  bool is_target = false;  ///< normalized by data.tgt_normalization, not data.src_normalization
};

/// Returns a file, plain, gzip or zstd, as a text. `read` throws DataError for a line that is not UTF-8 or holds a NUL.
SpmText text_file(const std::string& file);

/// Trains a SentencePiece model (Kudo and Richardson 2018, arXiv:1808.06226) by `options` on lines drawn uniformly from
/// all texts. Its bytes are a function of lines, options and seed. It has fewer pieces than data.vocab_size where the
/// texts give no more. Throws DataError if their characters alone are more, with that number.
std::string train_sentencepiece(const std::vector<SpmText>& texts, const DataOptions& options, uint64_t seed = 1);
/// Trains a SentencePiece model on text files.
std::string train_sentencepiece(const std::vector<std::string>& files, const DataOptions& options, uint64_t seed = 1);

}  // namespace lacuna
