#pragma once

#include <cstdint>
#include <string>

#include "base/files.h"
#include "config/options.h"

namespace lacuna {

/// Reads two files line by line, as pairs. What is wrong with the text is an error with its place; files of different length are one at the
/// end, with both line counts and the first byte that other programs take for a line end.
class CorpusReader {
 public:
  explicit CorpusReader(const CorpusOptions& corpus);
  /// False at the end of both files.
  bool next(std::string& src, std::string& tgt);
  int64_t line_number() const { return src_.line_number(); }
  int64_t carriage_returns() const { return src_.carriage_returns() + tgt_.carriage_returns(); }
  std::string src_place() const { return src_.place(); }
  std::string tgt_place() const { return tgt_.place(); }

 private:
  [[noreturn]] void fail_lengths();
  void look_for_other_line_ends(const LineReader& reader, const std::string& line);

  CorpusOptions corpus_;
  LineReader src_, tgt_;
  std::string suspicious_;  // place and name of the first byte that others take for a line end
};

}  // namespace lacuna
