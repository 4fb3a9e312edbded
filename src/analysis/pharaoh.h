#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/line_reader.h"

/// Word alignments as text, one sentence a line: "0-0 1-2 3?3" links source words with target words, both counted from 0. `-` is a sure
/// link; `?` or `p` a possible one, in gold files.
namespace lacuna {

using Link = std::pair<int32_t, int32_t>;  ///< source, target
using Links = std::vector<Link>;

/// A gold line: both lists sorted, without repeats; `possible` holds the sure ones too.
struct GoldLinks {
  Links sure, possible;
};

/// "0-0 1-2".
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

/// What a file of links counts words from: reads it through beside the texts it aligns (which may be empty: then only counts are checked).
/// `given` is what the user says it is, which nothing but a link out of range contradicts. Throws DataError for another number of lines,
/// for a link out of range, and for a file that seems to count from 1 where nobody said so; of fewer than 10 lines, whose links may never
/// name the first word, it warns and takes 0. `flag` is how the user would say it.
/// `joiner`: where the texts are pieces that it joins, links are between their words (text/joiner.h).
int checked_base(const std::string& links, std::optional<int> given, const std::string& src, const std::string& tgt,
                 const std::string& flag, const std::string& joiner = "");

/// Likewise of gold links, whose flag is --gold-base. Throws DataError where there is not a single one: nothing could agree with them.
int checked_base_of_gold(const std::string& gold, std::optional<int> given, const std::string& src, const std::string& tgt,
                         const std::string& joiner = "");

}  // namespace lacuna
