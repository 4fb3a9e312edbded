#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/line_reader.h"
#include "config/options.h"
#include "data/word_links.h"

/// Word alignments: links between the words of a sentence and of its translation, their text form, and the symmetrization of two
/// directions. As text (the Pharaoh format), a line a sentence, "0-0 1-2 3?3" links source words with target words, both counted from 0:
/// `-` is a sure link; `?` or `p`, in gold files, a possible one.
namespace lacuna {

using Link = WordLink;  ///< source, target
using Links = WordLinks;
using GoldLinks = LinksOfLine;

/// The text form of links: "0-0 1-2".
std::string pharaoh(const Links& links);

/// Reads alignments line by line.
class LinkReader {
 public:
  /// `base` is what the file counts words from, 0 or 1; links are given from 0.
  explicit LinkReader(const std::string& path, int base = 0);
  /// False at the end. Throws DataError, with file and line, for text that is no link or not UTF-8.
  bool next(GoldLinks& links);
  std::string place() const { return reader_.place(); }
  int64_t line_number() const { return reader_.line_number(); }

 private:
  LineReader reader_;
  int base_;
};

/// The next line of each of two files. False at the end of both. Throws DataError where one of them ends before the other.
bool next_of_both(LinkReader& a, GoldLinks& of_a, LinkReader& b, GoldLinks& of_b);

/// Finds out whether a file of links counts words from 0 or from 1: reads it through beside the texts it aligns (if those are empty, only
/// counts are checked). `given` is the base that the user states; then only a link out of range is refused. Throws DataError for another
/// number of lines, for a link out of range, and for a file that seems to count from 1 where no base is given; with fewer than 10 lines,
/// whose links may never name the first word, it warns and returns 0. `flag` is the name of the flag that states the base.
/// `joiner`: links are between the words that it joins pieces to (text/joiner.h).
int checked_base(const std::string& links, std::optional<int> given, const std::string& src, const std::string& tgt,
                 const std::string& flag, const std::string& joiner = "");

/// checked_base() for gold links, whose flag is --gold-base. Throws DataError too where the file, which error rates need, has no link.
/// Under OnBadLine::kSkip, links of a pair that is a bad line are not compared with it.
int checked_base_of_gold(const std::string& gold, std::optional<int> given, const std::string& src, const std::string& tgt,
                         const std::string& joiner = "", OnBadLine bad_lines = OnBadLine::kStop);

/// The ways to merge the alignments of two directions.
enum class Symmetrization { kIntersection, kUnion, kGrowDiagFinalAnd };
/// Returns the way of this name: intersection, union or grow-diag-final-and.
Symmetrization symmetrization_of(const std::string& name);

/// Symmetrizes links of two directions, each (source, target); sorted. Grow-diag-final-and (Koehn et al. 2003): from the intersection,
/// links of the union that touch one already there, also diagonally, are added as long as one of their words has none yet; then those of
/// either direction whose words both have none.
Links symmetrize(const Links& forward, const Links& backward, Symmetrization kind);

/// The links with source and target swapped; sorted.
Links turned(const Links& links);

}  // namespace lacuna
