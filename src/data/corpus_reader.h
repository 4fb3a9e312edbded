#pragma once

#include <cstdint>
#include <string>

#include "base/line_reader.h"

namespace lacuna {

/// Reads two files line by line, as pairs. What is wrong with the text is an error with its place; files of different length are one at the
/// end, with both line counts and the first byte that other programs take for a line end.
class CorpusReader {
 public:
  CorpusReader(std::string src, std::string tgt);
  /// False at the end of both files.
  bool next(std::string& src, std::string& tgt);
  int64_t line_number() const { return src_.line_number(); }
  int64_t carriage_returns() const { return src_.carriage_returns() + tgt_.carriage_returns(); }
  /// Lines of both files with a byte inside that other programs take for a line end (U+2028, a lone CR, ...): text here.
  int64_t other_line_ends() const { return other_line_ends_; }
  std::string src_place() const { return src_.place(); }
  std::string tgt_place() const { return tgt_.place(); }

 private:
  [[noreturn]] void fail_lengths();
  void note_other_line_ends(const LineReader& reader, const std::string& line);

  std::string src_file_, tgt_file_;
  LineReader src_, tgt_;
  int64_t other_line_ends_ = 0;
  std::string suspicious_;  // place and name of the first of them
};

/// The number of pairs. Reads both files through, so that what is wrong with them is known before long work begins.
int64_t count_pairs(const std::string& src, const std::string& tgt);

}  // namespace lacuna
