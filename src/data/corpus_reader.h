#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/line_reader.h"
#include "config/options.h"

namespace lacuna {

/// Reads a corpus line by line as pairs, from two files or from two columns of one. Puts the corpus's prefix before source lines that are
/// not blank. Throws DataError with the place for invalid text and for a line that lacks a column, and at the end for files of different
/// length, with both line counts and the first byte that other programs take for a line end.
class CorpusReader {
 public:
  explicit CorpusReader(CorpusOptions corpus);
  CorpusReader(std::string src, std::string tgt) : CorpusReader(CorpusOptions{.src = std::move(src), .tgt = std::move(tgt)}) {}
  /// False at the end of the corpus.
  bool next(std::string& src, std::string& tgt);
  int64_t line_number() const { return src_.line_number(); }
  int64_t carriage_returns() const { return src_.carriage_returns() + (tgt_ ? tgt_->carriage_returns() : 0); }
  /// Number of lines, of both sides, that contain a character other programs take for a line end (U+2028, a lone CR, ...).
  int64_t other_line_ends() const { return other_line_ends_; }
  std::string src_place() const { return src_.place(); }
  std::string tgt_place() const { return (tgt_ ? *tgt_ : src_).place(); }

 private:
  bool next_of_files(std::string& src, std::string& tgt);
  bool next_of_columns(std::string& src, std::string& tgt);
  [[noreturn]] void fail_lengths();
  [[noreturn]] void fail_columns() const;
  void note_other_line_ends(const LineReader& reader, const std::string& line);

  CorpusOptions corpus_;
  LineReader src_;                 // both sides, where they are columns
  std::optional<LineReader> tgt_;  // where the sides are files
  std::string row_;                // the last row of columns
  int64_t other_line_ends_ = 0;
  std::string suspicious_;  // place and name of the first such character
};

/// Returns the number of pairs. Reads the whole corpus, so that its errors are thrown before long work begins.
int64_t count_pairs(const CorpusOptions& corpus);

}  // namespace lacuna
