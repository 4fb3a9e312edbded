#include "data/corpus_reader.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/spelling.h"
#include "data/bad_lines.h"
#include "text/joiner.h"
#include "text/writing_system.h"

namespace lacuna {
namespace {

constexpr char kOtherColumns[] = "with another number of columns";
constexpr int64_t kLinesBetweenLooks = 1 << 16;  // between checks for interrupts

std::string checked(const std::pair<std::string, std::string>& file) {
  require_readable_file(file.first, file.second);
  return file.first;
}

/// Returns a column of a row that has as many, counted from 1.
std::string_view column_of(std::string_view row, int64_t number) {
  for (; number > 1; --number) row.remove_prefix(row.find('\t') + 1);
  return row.substr(0, row.find('\t'));
}

int64_t columns_of(std::string_view row) {
  return std::count(row.begin(), row.end(), '\t') + 1;
}

/// Reads a line, whatever is wrong with it: the first such error is kept. Returns false at the end.
bool read_line(LineReader& reader, std::string& line, std::optional<LineError>& error) {
  try {
    return reader.next_clean(line);
  } catch (const LineError& wrong) {
    if (!error) error.emplace(wrong);
    return true;
  }
}

int64_t count_rest(LineReader& reader) {
  std::string line;
  for (std::optional<LineError> ignored; read_line(reader, line, ignored);) {
  }
  return reader.line_number();
}

/// Returns the number of words, which spaces separate.
int32_t words_of(std::string_view text) {
  return joined_words(text, "").back();
}

/// Returns the number of columns that most of a file's first lines have, of those with at least `least`; without any, `least`. What can be
/// read only once is not looked at: 0.
int64_t usual_columns(const std::string& file, int64_t least) {
  constexpr int64_t kLinesToSee = 1000;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return 0;
  LineReader reader(file);
  std::map<int64_t, int64_t> lines_with = {{least, 0}};
  std::string row;
  for (std::optional<LineError> bad; reader.line_number() < kLinesToSee && read_line(reader, row, bad); bad.reset())
    if (const int64_t columns = columns_of(row); !bad && columns >= least) ++lines_with[columns];
  return std::ranges::max_element(lines_with, {}, [](const auto& entry) { return entry.second; })->first;
}

}  // namespace

CorpusReader::CorpusReader(CorpusOptions corpus, BadLineHandler on_bad_line)
    : corpus_(std::move(corpus)),
      on_bad_line_(std::move(on_bad_line)),
      src_(corpus_.stream ? corpus_.tsv : checked(corpus_.files().front())) {
  if (corpus_.tsv.empty())
    tgt_.emplace(checked(corpus_.files().back()));
  else
    num_columns_ = usual_columns(corpus_.tsv, least_columns());
  if (!corpus_.links.empty()) links_file_.emplace(checked({corpus_.links, "word alignments"}));
}

/// Returns the number of columns that a row needs for all that is read of it.
int64_t CorpusReader::least_columns() const {
  return std::max({std::ranges::max(corpus_.columns), corpus_.min_score.column, corpus_.links_column});
}

bool CorpusReader::next(std::string& src, std::string& tgt) {
  for (bool is_taken = false; !is_taken;) {
    try {
      if (!(tgt_ ? next_of_files(src, tgt) : next_of_columns(src, tgt))) return false;
      is_taken = true;
    } catch (const LineError& error) {
      if (!on_bad_line_) throw;
      on_bad_line_(error, tgt_ ? src + "\t" + tgt : row_);
    }
  }
  if (!corpus_.src_prefix.empty() && !is_blank(src)) {
    src.insert(0, corpus_.src_prefix + " ");
    if (!links_.empty())
      for (const int32_t words = words_of(corpus_.src_prefix); WordLink & link : links_) link.first += words;
  }
  return true;
}

bool CorpusReader::skip(int64_t lines) {
  const bool has_src = src_.skip(lines);
  if (tgt_ && tgt_->skip(lines) != has_src) fail_lengths();
  if (links_file_ && links_file_->skip(lines) != has_src) fail_links_length();
  return has_src;
}

bool CorpusReader::is_at_end() {
  return src_.is_at_end() && (!tgt_ || tgt_->is_at_end());
}

bool CorpusReader::next_of_files(std::string& src, std::string& tgt) {
  std::optional<LineError> error;
  const bool has_src = read_line(src_, src, error), has_tgt = read_line(*tgt_, tgt, error);
  if (has_src != has_tgt) fail_lengths();
  read_links_line(has_src, error);
  if (!has_src) return false;
  if (error) throw LineError(*error);
  take_links(src, tgt);
  note_other_line_ends(src_, src);
  note_other_line_ends(*tgt_, tgt);
  return true;
}

bool CorpusReader::next_of_columns(std::string& src, std::string& tgt) {
  do {
    std::optional<LineError> error;
    const bool has_row = read_line(src_, row_, error);
    read_links_line(has_row, error);
    if (!has_row) return false;
    if (error) throw LineError(*error);
    const int64_t columns = columns_of(row_);
    if (num_columns_ == 0 && columns >= least_columns()) num_columns_ = columns;
    if (columns == num_columns_) continue;
    if (!is_blank(row_)) fail_columns(columns);
    src.clear();
    tgt.clear();
    links_.clear();
    return true;
  } while (has_low_score());
  src = column_of(row_, corpus_.columns.at(0));
  tgt = column_of(row_, corpus_.columns.at(1));
  if (corpus_.links_column > 0) links_line_ = column_of(row_, corpus_.links_column);
  take_links(src, tgt);
  note_other_line_ends(src_, src);
  note_other_line_ends(src_, tgt);
  return true;
}

/// Reads the line of a pair's links, if they have a file; an error is kept unless there is one.
void CorpusReader::read_links_line(bool has_pair, std::optional<LineError>& error) {
  if (!links_file_) return;
  links_line_.clear();
  if (read_line(*links_file_, links_line_, error) != has_pair) fail_links_length();
}

/// Takes the links of a pair from their line.
void CorpusReader::take_links(const std::string& src, const std::string& tgt) {
  if (!corpus_.has_links()) return;
  const std::string place = (links_file_ ? *links_file_ : src_).place();
  links_ = parse_links(links_line_, place).possible;
  const std::string trouble = link_out_of_range(links_, 0, words_of(src), words_of(tgt));
  if (!trouble.empty()) throw LineError("with links to words that are not there", place + ": " + trouble);
}

/// True, and counted, if the row's score is below min_score. Throws LineError for one that is no number.
bool CorpusReader::has_low_score() {
  const auto& [column, at_least] = corpus_.min_score;
  if (column == 0) return false;
  const std::string_view text = column_of(row_, column);
  double score = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), score);
  if (error != std::errc() || end != text.data() + text.size() || std::isnan(score))
    throw LineError("with a score that is no number",
                    fmt::format("{}: column {} is \"{}\"; expected a score, a number, as min_score reads it", src_.place(), column, text));
  if (score >= at_least) return false;
  ++low_scores_;
  return true;
}

void CorpusReader::note_other_line_ends(const LineReader& reader, const std::string& line) {
  constexpr std::pair<const char*, const char*> kOthers[] = {
      {"\r", "a carriage return inside the line"}, {"\xE2\x80\xA8", "U+2028"}, {"\xE2\x80\xA9", "U+2029"}, {"\xC2\x85", "U+0085"}};
  if (line.find_first_of("\r\xE2\xC2") == std::string::npos) return;
  for (const auto& [bytes, name] : kOthers) {
    const size_t at = line.find(bytes);
    if (at == std::string::npos) continue;
    ++other_line_ends_;
    if (suspicious_.empty()) suspicious_ = reader.place() + ", byte " + std::to_string(at + 1) + " is " + name;
    return;
  }
}

void CorpusReader::fail_lengths() {
  const int64_t src_lines = count_rest(src_), tgt_lines = count_rest(*tgt_);
  const std::string hint = suspicious_.empty() ? "" : " (" + suspicious_ + ", which some programs take for a line end)";
  throw DataError(corpus_.src + " has " + counted(src_lines, "line") + " and " + corpus_.tgt + " has " + std::to_string(tgt_lines) +
                  "; expected as many in both" + hint);
}

void CorpusReader::fail_links_length() {
  const int64_t links = count_rest(*links_file_), pairs = count_rest(src_);
  throw DataError(fmt::format("{} has {} and {} has {}; expected one line of links for each pair", corpus_.links, counted(links, "line"),
                              corpus_.files().front().first, pairs));
}

void CorpusReader::fail_columns(int64_t found) const {
  const std::string has = fmt::format("{}: the line has {}", src_.place(), counted(found, "column"));
  if (found < least_columns())
    throw LineError(kOtherColumns,
                    fmt::format("{}; expected the source in column {} and the target in column {}{}{}, with a tab between columns. "
                                "Mend the line or remove it, or set the corpus's `columns`",
                                has, corpus_.columns[0], corpus_.columns[1],
                                corpus_.min_score.column > 0 ? fmt::format(" and a score in column {}", corpus_.min_score.column) : "",
                                corpus_.links_column > 0 ? fmt::format(" and links in column {}", corpus_.links_column) : ""));
  throw LineError(kOtherColumns, fmt::format("{}, and most have {}; expected as many in all, as a tab too many or too few moves texts to "
                                             "other columns. Mend the line or remove it",
                                             has, num_columns_));
}

int64_t count_pairs(const CorpusOptions& corpus, OnBadLine bad_lines, const std::string& remedy) {
  for (const auto& [file, what] : corpus.files()) require_rereadable_file(file);
  BadLines bad;
  std::optional<LineError> only;
  CorpusReader reader(corpus, [&](const LineError& error, std::string_view /*line*/) {
    bad.add(error);
    if (!only) only.emplace(error);
  });
  std::string src, tgt;
  while (reader.next(src, tgt))
    if (reader.line_number() % kLinesBetweenLooks == 0) stop_if_interrupted("reading " + corpus.files_text());
  if (bad_lines == OnBadLine::kSkip || bad.count() == 0) return reader.line_number();
  if (bad.count() == 1) throw LineError(only->kind(), only->what() + remedy);
  throw DataError(fmt::format("{}: {} of {} cannot be taken: {}{}", corpus.files_text(), bad.count(), counted(reader.line_number(), "line"),
                              bad.text(), remedy));
}

}  // namespace lacuna
