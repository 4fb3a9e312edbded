#include "data/corpus_reader.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/spelling.h"
#include "text/writing_system.h"

namespace lacuna {
namespace {

constexpr int64_t kLinesBetweenLooks = 1 << 16;  // between checks for interrupts

std::string checked(const std::pair<std::string, std::string>& file) {
  require_readable_file(file.first, file.second);
  return file.first;
}

/// Returns a column of a row, counted from 1; empty if the row has fewer.
std::optional<std::string_view> column_of(std::string_view row, int64_t number) {
  for (; number > 1; --number) {
    const size_t tab = row.find('\t');
    if (tab == std::string_view::npos) return {};
    row.remove_prefix(tab + 1);
  }
  return row.substr(0, row.find('\t'));
}

int64_t count_rest(LineReader& reader) {
  std::string line;
  while (reader.next(line)) {
  }
  return reader.line_number();
}

}  // namespace

CorpusReader::CorpusReader(CorpusOptions corpus) : corpus_(std::move(corpus)), src_(checked(corpus_.files().front())) {
  if (corpus_.tsv.empty()) tgt_.emplace(checked(corpus_.files().back()));
}

bool CorpusReader::next(std::string& src, std::string& tgt) {
  if (!(tgt_ ? next_of_files(src, tgt) : next_of_columns(src, tgt))) return false;
  if (!corpus_.src_prefix.empty() && !is_blank(src)) src.insert(0, corpus_.src_prefix + " ");
  return true;
}

bool CorpusReader::next_of_files(std::string& src, std::string& tgt) {
  const bool has_src = src_.next(src), has_tgt = tgt_->next(tgt);
  if (has_src != has_tgt) fail_lengths();
  if (!has_src) return false;
  src_.require_clean(src);
  tgt_->require_clean(tgt);
  note_other_line_ends(src_, src);
  note_other_line_ends(*tgt_, tgt);
  return true;
}

bool CorpusReader::next_of_columns(std::string& src, std::string& tgt) {
  if (!src_.next(row_)) return false;
  src_.require_clean(row_);
  const auto src_column = column_of(row_, corpus_.columns.at(0)), tgt_column = column_of(row_, corpus_.columns.at(1));
  if (!src_column || !tgt_column) fail_columns();
  src = *src_column;
  tgt = *tgt_column;
  note_other_line_ends(src_, src);
  note_other_line_ends(src_, tgt);
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

void CorpusReader::fail_columns() const {
  const auto found = std::count(row_.begin(), row_.end(), '\t') + 1;
  throw DataError(
      fmt::format("{}: the line has {}; expected the source in column {} and the target in column {}, with a tab between columns. "
                  "Mend the line or remove it, or set the corpus's `columns`",
                  src_.place(), counted(found, "column"), corpus_.columns[0], corpus_.columns[1]));
}

int64_t count_pairs(const CorpusOptions& corpus) {
  for (const auto& [file, what] : corpus.files()) require_rereadable_file(file);
  CorpusReader reader(corpus);
  std::string src, tgt;
  while (reader.next(src, tgt))
    if (reader.line_number() % kLinesBetweenLooks == 0) stop_if_interrupted("reading " + corpus.files_text());
  return reader.line_number();
}

}  // namespace lacuna
