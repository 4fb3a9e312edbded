#include "data/corpus_reader.h"

#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/spelling.h"

namespace lacuna {
namespace {

constexpr int64_t kLinesBetweenLooks = 1 << 16;  // at interrupts

const std::string& checked(const std::string& path, const char* what) {
  require_readable_file(path, what);
  return path;
}

int64_t count_rest(LineReader& reader) {
  std::string line;
  while (reader.next(line)) {
  }
  return reader.line_number();
}

}  // namespace

CorpusReader::CorpusReader(std::string src, std::string tgt)
    : src_file_(std::move(src)),
      tgt_file_(std::move(tgt)),
      src_(checked(src_file_, "source text")),
      tgt_(checked(tgt_file_, "target text")) {}

bool CorpusReader::next(std::string& src, std::string& tgt) {
  const bool has_src = src_.next(src), has_tgt = tgt_.next(tgt);
  if (has_src != has_tgt) fail_lengths();
  if (!has_src) return false;
  src_.require_clean(src);
  tgt_.require_clean(tgt);
  note_other_line_ends(src_, src);
  note_other_line_ends(tgt_, tgt);
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
  const int64_t src_lines = count_rest(src_), tgt_lines = count_rest(tgt_);
  const std::string hint = suspicious_.empty() ? "" : " (" + suspicious_ + ", which some programs take for a line end)";
  throw DataError(src_file_ + " has " + counted(src_lines, "line") + " and " + tgt_file_ + " has " + std::to_string(tgt_lines) +
                  "; expected as many in both" + hint);
}

int64_t count_pairs(const std::string& src, const std::string& tgt) {
  for (const std::string& file : {src, tgt}) require_rereadable_file(file);
  CorpusReader reader(src, tgt);
  std::string src_line, tgt_line;
  while (reader.next(src_line, tgt_line))
    if (reader.line_number() % kLinesBetweenLooks == 0) stop_if_interrupted("reading " + src + " and " + tgt);
  return reader.line_number();
}

}  // namespace lacuna
