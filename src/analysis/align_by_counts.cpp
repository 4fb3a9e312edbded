#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <future>

#include "analysis/align_text.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/output.h"
#include "base/resources.h"
#include "base/spelling.h"
#include "config/on_bad_line.h"
#include "data/corpus_reader.h"
#include "data/word_aligner.h"

namespace lacuna {
namespace {

constexpr size_t kMostWords = 250;  // of a side; the time for a pair grows with the cube of its length

/// A text as the ids of its words; pairs that are passed over or too long are empty.
struct WordText {
  TokenPairs pairs, turned;  ///< the same pairs, with the sides swapped
  WordIds src, tgt;
  int64_t bad = 0, too_long = 0;
};

WordText read_words(const AlignRequest& asked) {
  WordText text;
  const auto add = [&](const std::vector<TokenId>& src, const std::vector<TokenId>& tgt) {
    text.pairs.add(src, tgt);
    text.turned.add(tgt, src);
  };
  CorpusReader reader({.src = asked.src, .tgt = asked.tgt}, [&](const LineError& error, std::string_view) {
    pass_over(error, asked.bad_lines);
    ++text.bad;
    add({}, {});
  });
  for (std::string src, tgt; reader.next(src, tgt);) {
    stop_if_interrupted("reading " + asked.src);
    const std::vector<TokenId> src_ids = text.src.add(src), tgt_ids = text.tgt.add(tgt);
    const bool is_long = std::max(src_ids.size(), tgt_ids.size()) > kMostWords;
    text.too_long += is_long ? 1 : 0;
    is_long ? add({}, {}) : add(src_ids, tgt_ids);
  }
  return text;
}

/// Warns of a text in which most words come too seldom to be learned.
void warn_of_few_pairs(int64_t pairs) {
  constexpr int64_t kFew = 1000;
  if (pairs < kFew)
    log_warning(
        "{} are few to align words by how often they occur together, and links will be poor: some thousand are needed; align them within "
        "a larger text of these languages, or with a model (-m)",
        counted(pairs, "pair"));
}

std::vector<Links> links_of_all(const TokenPairs& pairs, int64_t src_size, int64_t tgt_size, int64_t threads) {
  const WordAligner aligner(pairs, src_size, tgt_size, threads);
  std::vector<Links> links(static_cast<size_t>(pairs.size()));
  const auto part = [](const std::vector<TokenId>& ids, const std::vector<int64_t>& begin, size_t pair) {
    return std::span(ids).subspan(static_cast<size_t>(begin[pair]), static_cast<size_t>(begin[pair + 1] - begin[pair]));
  };
  for (size_t i = 0; i < links.size(); ++i)
    links[i] = aligner.align(part(pairs.src, pairs.src_begin, i), part(pairs.tgt, pairs.tgt_begin, i));
  return links;
}

}  // namespace

AlignedText align_by_counts(const AlignRequest& asked) {
  for (const std::string& file : {asked.src, asked.tgt}) require_readable_file(file, "text to align");
  Output output(asked.output, asked.texts_to_read());
  const WordText text = read_words(asked);
  if (text.pairs.src.empty() || text.pairs.tgt.empty())
    throw DataError(
        fmt::format("{} and {}: no pair to learn alignments from: {}", asked.src, asked.tgt,
                    why_none_is_left(text.bad, text.pairs.size(), fmt::format("empty on a side, or longer than {} words", kMostWords))));
  warn_of_few_pairs(text.pairs.size() - text.bad);
  const int64_t threads = std::max<int64_t>(1, thread_count() / 2);
  auto other = std::async(std::launch::async, [&] { return links_of_all(text.turned, text.tgt.size(), text.src.size(), threads); });
  const std::vector<Links> forward = links_of_all(text.pairs, text.src.size(), text.tgt.size(), threads), backward = other.get();
  const Symmetrization way = symmetrization_of(asked.symmetrize.empty() ? "grow-diag-final-and" : asked.symmetrize);
  for (size_t i = 0; i < forward.size(); ++i)
    if (!output.write(pharaoh(symmetrize(forward[i], turned(backward[i]), way)) + "\n")) return {.is_read = false};
  output.finish();
  if (text.too_long > 0)
    log_warning("{} {} an empty line: a side has more than {} words", counted(text.too_long, "pair"), text.too_long == 1 ? "gets" : "get",
                kMostWords);
  return {.pairs = text.pairs.size(), .bad_pairs = text.bad};
}

}  // namespace lacuna
