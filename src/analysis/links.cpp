#include "analysis/links.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/spelling.h"
#include "data/corpus_reader.h"
#include "text/joiner.h"

namespace lacuna {
namespace {

constexpr int64_t kEnoughLines = 10;  // with no word 0 in any link, so many seem to count from 1, and fewer may

std::string text_of(const Link& link) {
  return std::to_string(link.first) + "-" + std::to_string(link.second);
}

/// The first link that is out of range when words are counted from `base`, as an error message.
struct RangeCheck {
  int base;
  std::string problem = {};

  void see(const Links& links, int32_t src_words, int32_t tgt_words, const std::string& at) {
    if (!problem.empty()) return;
    const std::string bad = link_out_of_range(links, base, src_words, tgt_words);
    if (!bad.empty()) problem = at + ": " + bad;
  }
};

/// Facts about a file of links and the texts beside it.
struct Observed {
  RangeCheck from_zero{0}, from_one{1};
  int64_t lines = 0, text_lines = 0;
  bool has_links = false;
  std::string zero_at;  // file and line of the first link that names word 0; empty = none does
};

/// A pair of lines as observe() reads it.
struct TextPair {
  std::string src, tgt;
  bool is_bad = false;

  /// Reads the next pair. Returns false at the end.
  bool read(CorpusReader& reader, OnBadLine bad_lines) {
    is_bad = false;
    try {
      return reader.next(src, tgt);
    } catch (const LineError&) {
      if (bad_lines == OnBadLine::kStop) throw;
      is_bad = true;
      return true;
    }
  }
};

Observed observe(const std::string& path, const std::string& src, const std::string& tgt, const std::string& joiner, OnBadLine bad_lines) {
  for (const std::string& file : {path, src, tgt}) require_rereadable_file(file);  // now, and again link by link
  Observed seen;
  LinkReader reader(path);
  std::optional<CorpusReader> texts;
  if (!src.empty()) texts.emplace(src, tgt);
  GoldLinks links;
  TextPair pair;
  for (bool more_links = true, more_texts = texts.has_value(); more_links || more_texts;) {
    more_links = more_links && reader.next(links);
    more_texts = more_texts && pair.read(*texts, bad_lines);
    seen.lines += more_links;
    seen.text_lines += more_texts;
    if (!more_links) continue;
    for (const auto& [src_word, tgt_word] : links.possible)
      if (seen.zero_at.empty() && (src_word == 0 || tgt_word == 0)) seen.zero_at = reader.place();
    seen.has_links = seen.has_links || !links.possible.empty();
    if (!more_texts || pair.is_bad) continue;
    const int32_t src_words = joined_words(pair.src, joiner).back(), tgt_words = joined_words(pair.tgt, joiner).back();
    seen.from_zero.see(links.possible, src_words, tgt_words, reader.place());
    seen.from_one.see(links.possible, src_words, tgt_words, reader.place());
  }
  return seen;
}

/// The base of a file, as checked_base() defines it.
int base_of(const Observed& seen, const std::string& links, std::optional<int> given, const std::string& src, const std::string& flag) {
  if (!src.empty() && seen.lines != seen.text_lines)
    throw DataError(links + " has " + counted(seen.lines, "line") + " and " + src + " has " + std::to_string(seen.text_lines) +
                    "; expected one line of links for each pair");
  if (given) {
    const RangeCheck& check = *given == 0 ? seen.from_zero : seen.from_one;
    if (!check.problem.empty()) throw DataError(check.problem);
    if (*given == 1 && !seen.zero_at.empty())
      throw DataError(seen.zero_at + ": a link names word 0, and " + flag + " is 1; expected words counted from 1, or " + flag + " 0");
    return *given;
  }
  const bool fits_one = seen.has_links && seen.zero_at.empty() && seen.from_one.problem.empty();
  if (!seen.from_zero.problem.empty() && fits_one)
    throw DataError(seen.from_zero.problem + ". No link names word 0, and all fit if words are counted from 1: say " + flag + " 1");
  if (!seen.from_zero.problem.empty()) throw DataError(seen.from_zero.problem);
  if (fits_one && seen.lines >= kEnoughLines)
    throw DataError(links + ": no link in " + std::to_string(seen.lines) + " lines names word 0, so words seem to be counted from 1: say " +
                    flag + " 1, or " + flag + " 0 if they are counted from 0");
  if (fits_one)
    log_warning(
        "{}: no link in {} names word 0; so few may count from 0 or from 1, and are taken to count from 0: say {} 1 if they do not, "
        "{} 0 if they do",
        links, counted(seen.lines, "line"), flag, flag);
  return 0;
}

}  // namespace

std::string pharaoh(const Links& links) {
  std::string text;
  for (const Link& link : links) text.append(text.empty() ? "" : " ").append(text_of(link));
  return text;
}

LinkReader::LinkReader(const std::string& path, int base) : reader_((require_readable_file(path, "word alignments"), path)), base_(base) {}

bool LinkReader::next(GoldLinks& links) {
  std::string line;
  if (!reader_.next_clean(line)) return false;
  links = parse_links(line, place());
  for (Links* const list : {&links.sure, &links.possible})
    for (auto& [src, tgt] : *list) {
      src -= base_;
      tgt -= base_;
    }
  return true;
}

bool next_of_both(LinkReader& a, GoldLinks& of_a, LinkReader& b, GoldLinks& of_b) {
  const bool a_goes_on = a.next(of_a), b_goes_on = b.next(of_b);
  if (a_goes_on != b_goes_on)
    throw DataError((a_goes_on ? b : a).place() + " is the last line, and " + (a_goes_on ? a : b).place() +
                    " is there too; expected as many lines in both files of links");
  return a_goes_on;
}

int checked_base(const std::string& links, std::optional<int> given, const std::string& src, const std::string& tgt,
                 const std::string& flag, const std::string& joiner) {
  return base_of(observe(links, src, tgt, joiner, OnBadLine::kStop), links, given, src, flag);
}

int checked_base_of_gold(const std::string& gold, std::optional<int> given, const std::string& src, const std::string& tgt,
                         const std::string& joiner, OnBadLine bad_lines) {
  const Observed seen = observe(gold, src, tgt, joiner, bad_lines);
  const int base = base_of(seen, gold, given, src, "--gold-base");
  if (!seen.has_links)
    throw DataError(gold + ": none of its " + std::to_string(seen.lines) +
                    " lines has a link; expected gold links, such as 0-0 1-2, which error rates are measured against");
  return base;
}

}  // namespace lacuna
