#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/line_reader.h"
#include "config/options.h"
#include "data/word_links.h"

namespace lacuna {

/// Reads a corpus line by line as pairs, from two files or from two columns of one. Puts the corpus's prefix before source lines that are
/// not blank. A blank line of columns is a pair of empty sentences; one with a score below min_score is passed over. Throws LineError with
/// the place for invalid text and for a line with another number of columns than most, and at the end DataError for files of different
/// length, with both line counts and the first byte that other programs take for a line end. Where the corpus has links, those of a pair
/// are read with it: a line that holds none is LineError, as is a link to a word that is not there.
class CorpusReader {
 public:
  /// Gets what is wrong with a line, and its text (both sides with a tab between, where these are files).
  using BadLineHandler = std::function<void(const LineError& error, std::string_view line)>;

  /// Lines that are handed to `on_bad_line` are passed over, with their partner; without it `next` throws, and goes on behind them.
  explicit CorpusReader(CorpusOptions corpus, BadLineHandler on_bad_line = {});
  CorpusReader(std::string src, std::string tgt) : CorpusReader(CorpusOptions{.src = std::move(src), .tgt = std::move(tgt)}) {}
  /// False at the end of the corpus.
  bool next(std::string& src, std::string& tgt);
  /// The links between the words of the last pair, sure and possible; empty if the corpus has none.
  const WordLinks& links() const { return links_; }
  /// Passes over pairs of lines, whatever they hold. Returns false if the corpus ends before.
  bool skip(int64_t lines);
  /// True if `next` would block, for columns of a pipe.
  bool would_wait() { return src_.would_wait(); }
  /// Number of pairs that were passed over because of their score (CorpusOptions::min_score).
  int64_t low_scores() const { return low_scores_; }
  /// True if no pair follows.
  bool is_at_end();
  /// Returns the share of the source's bytes that were read.
  double share_read() const { return src_.share_read(); }
  int64_t line_number() const { return src_.line_number(); }
  int64_t carriage_returns() const { return src_.carriage_returns() + (tgt_ ? tgt_->carriage_returns() : 0); }
  /// Number of lines, of both sides, that contain a character other programs take for a line end (U+2028, a lone CR, ...).
  int64_t other_line_ends() const { return other_line_ends_; }
  std::string src_place() const { return src_.place(); }
  std::string tgt_place() const { return (tgt_ ? *tgt_ : src_).place(); }

 private:
  bool next_of_files(std::string& src, std::string& tgt);
  bool next_of_columns(std::string& src, std::string& tgt);
  void read_links_line(bool has_pair, std::optional<LineError>& error);
  void take_links(const std::string& src, const std::string& tgt);
  bool has_low_score();
  int64_t least_columns() const;
  [[noreturn]] void fail_lengths();
  [[noreturn]] void fail_links_length();
  [[noreturn]] void fail_columns(int64_t found) const;
  void note_other_line_ends(const LineReader& reader, const std::string& line);

  CorpusOptions corpus_;
  BadLineHandler on_bad_line_;
  LineReader src_;                 // both sides, where they are columns
  std::optional<LineReader> tgt_;  // where the sides are files
  std::optional<LineReader> links_file_;
  std::string links_line_;  // of the last pair
  WordLinks links_;
  std::string row_;          // the last row of columns
  int64_t num_columns_ = 0;  // of a row; 0 = as the first will have
  int64_t low_scores_ = 0;
  int64_t other_line_ends_ = 0;
  std::string suspicious_;  // place and name of the first such character
};

/// Returns the number of pairs, bad lines among them. Reads the whole corpus, so that its errors are thrown before long work begins: all
/// kinds of bad lines at once, with `remedy` behind them, unless these are to be skipped.
int64_t count_pairs(const CorpusOptions& corpus, OnBadLine bad_lines = OnBadLine::kStop, const std::string& remedy = "");
/// The remedy for a training corpus.
inline constexpr char kSkipInTraining[] = ". data.bad_lines: skip leaves such lines out";

}  // namespace lacuna
