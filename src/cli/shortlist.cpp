#include "text/shortlist.h"

#include <ATen/Parallel.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>

#include "analysis/links.h"
#include "base/line_reader.h"
#include "base/log.h"
#include "base/output.h"
#include "base/spelling.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/run_folder.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"
#include "config/on_bad_line.h"
#include "data/corpus_reader.h"
#include "data/lexicon.h"
#include "text/invisible_characters.h"

namespace lacuna {
namespace {

constexpr size_t kPairsAtATime = 8192;

struct ShortlistFlags {
  std::string model, src, tgt, output, alignments, level = "word";
  int64_t best = 100, frequent = 100, iterations = 5, max_pairs = 0;
  OnBadLine bad_lines = OnBadLine::kStop;
  CommonFlags common;

  void declare(CLI::App& app) {
    app.add_option("-m,--model", model, "Checkpoint or run folder whose vocabularies count")->required();
    app.add_option("--src", src, "Source side of the training data, plain, gzip or zstd")->required();
    app.add_option("--tgt", tgt, "Its target side, line by line")->required();
    app.add_option("-o,--output", output, "File of the shortlist")->required();
    app.add_option("--best", best, "Candidates that a source token brings, the likeliest")
        ->check(whole_number_from(1, Shortlist::kMostBest));
    app.add_option("--frequent", frequent, "Most frequent target tokens, candidates of every sentence")
        ->check(whole_number_from(0, Shortlist::kMostFrequent));
    auto* links = app.add_option("--alignments", alignments, "Links of the pairs (0-0 1-2), as of lacuna align, in place of IBM model 1");
    app.add_option("--level", level, "What they link")->check(CLI::IsMember({"word", "subword"}))->needs(links);
    app.add_option("--iterations", iterations, "Iterations of IBM model 1")->check(whole_number_from(1))->excludes(links);
    app.add_option("--max-pairs", max_pairs, "Only the first so many pairs; 0 = all")->check(whole_number_from(0));
    flags::add_on_error(app, bad_lines, "its pair is left out");
    common.declare_threads_and_log(app);
    app.footer("Memory: some 16 bytes for each pair of tokens, and 8 for each of at most 1,000 translations of a source token.");
  }
};

/// A pair of lines as tokens, with the place of the pair; empty if it is bad and passed over.
struct Pair {
  std::string src_text, tgt_text, place;
  std::vector<TokenId> src, tgt;
  bool is_bad = false;
};

/// Reads the next pair of lines. Returns false at the end.
bool read_pair(CorpusReader& reader, OnBadLine bad_lines, Pair& pair) {
  pair = {};
  try {
    if (!reader.next(pair.src_text, pair.tgt_text)) return false;
  } catch (const LineError& error) {
    pass_over(error, bad_lines);
    pair = {};
    pair.is_bad = true;
  }
  pair.place = reader.src_place();
  return true;
}

/// The next pairs, none at the end; tokenized on all threads.
std::vector<Pair> next_pairs(CorpusReader& reader, const Vocabularies& vocabularies, OnBadLine bad_lines, size_t count) {
  std::vector<Pair> pairs;
  for (Pair pair; pairs.size() < count && read_pair(reader, bad_lines, pair);) pairs.push_back(pair);
  at::parallel_for(0, static_cast<int64_t>(pairs.size()), 64, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      pairs[i].src_text = source_text(*vocabularies.src, pairs[i].src_text);
      pairs[i].src = vocabularies.src->encode(pairs[i].src_text);
      pairs[i].tgt = vocabularies.tgt->encode(pairs[i].tgt_text);
    }
  });
  return pairs;
}

/// The tokens of each unit that links name: a word, or a token by itself.
std::vector<std::vector<TokenId>> units_of(const Vocabulary& vocabulary, const std::string& text, const std::vector<TokenId>& ids,
                                           bool by_words) {
  std::vector<std::vector<TokenId>> units;
  const std::vector<int32_t> words = by_words ? vocabulary.words_of(text, ids) : std::vector<int32_t>();
  for (size_t i = 0; i < ids.size(); ++i) {
    const size_t unit = by_words ? static_cast<size_t>(words[i]) : i;
    if (unit >= units.size()) units.resize(unit + 1);
    units[unit].push_back(ids[i]);
  }
  return units;
}

/// Collects what pairs and their links say of tokens.
class Gatherer {
 public:
  Gatherer(const ShortlistFlags& flags, const Vocabularies& vocabularies)
      : flags_(flags),
        vocabularies_(vocabularies),
        links_(vocabularies.src->size()),
        frequencies_(static_cast<size_t>(vocabularies.tgt->size())) {
    if (!flags.alignments.empty()) reader_.emplace(flags.alignments);
  }

  void add(const Pair& pair) {
    for (const TokenId id : pair.tgt) ++frequencies_[static_cast<size_t>(id)];
    pairs_.add(pair.src, pair.tgt);
    bad_pairs_ += pair.is_bad ? 1 : 0;
    if (reader_) add_links(pair);
  }

  /// Throws DataError if there is nothing to make a shortlist of.
  void require_pairs() const {
    if (!pairs_.src.empty() && !pairs_.tgt.empty()) return;
    throw DataError(flags_.src + " and " + flags_.tgt +
                    ": no pair to make a shortlist of: " + why_none_is_left(bad_pairs_, pairs_.size(), "empty on a side"));
  }

  Shortlist shortlist(bool is_whole_corpus) {
    if (GoldLinks more; reader_ && is_whole_corpus && reader_->next(more))
      throw DataError(reader_->place() + ": is there, but " + flags_.src + " has no such line; expected one line of links for each pair");
    const Lexicon lexicon =
        reader_
            ? links_.lexicon(flags_.best)
            : learn_lexicon(pairs_, {vocabularies_.src->size(), vocabularies_.tgt->size(), flags_.iterations, 1000, at::get_num_threads()});
    std::vector<std::vector<TokenId>> best(lexicon.size());
    for (size_t id = 0; id < lexicon.size(); ++id)
      for (const LexiconEntry& entry : lexicon[id])
        if (static_cast<int64_t>(best[id].size()) < flags_.best) best[id].push_back(entry.tgt);
    return {vocabularies_, std::move(best), most_frequent()};
  }

  /// Says how much of the text the shortlist lets through: what it was made of, so at most that of other text.
  void report(const Shortlist& shortlist) const {
    constexpr int64_t kPairsLookedAt = 10'000;
    int64_t count = 0, candidates = 0, tokens = 0, found = 0;
    for (size_t i = 0; i < static_cast<size_t>(std::min(pairs_.size(), kPairsLookedAt)); ++i) {
      if (pairs_.src_begin[i] == pairs_.src_begin[i + 1]) continue;  // a bad one
      ++count;
      const auto part = [i](const std::vector<TokenId>& ids, const std::vector<int64_t>& begin) {
        return std::span(ids).subspan(static_cast<size_t>(begin[i]), static_cast<size_t>(begin[i + 1] - begin[i]));
      };
      const std::vector<TokenId> listed = shortlist.candidates(part(pairs_.src, pairs_.src_begin), {});
      candidates += static_cast<int64_t>(listed.size());
      for (const TokenId id : part(pairs_.tgt, pairs_.tgt_begin)) {
        ++tokens;
        found += std::binary_search(listed.begin(), listed.end(), id) ? 1 : 0;
      }
    }
    log_info("of the first {}: {:.0f} candidates a sentence of {} target tokens; {:.2f} % of the target's tokens are among them",
             counted(count, "pair"), static_cast<double>(candidates) / static_cast<double>(std::max<int64_t>(count, 1)),
             vocabularies_.tgt->size(), 100 * static_cast<double>(found) / static_cast<double>(std::max<int64_t>(tokens, 1)));
  }

  int64_t num_pairs() const { return pairs_.size(); }  ///< bad ones among them
  int64_t bad_pairs() const { return bad_pairs_; }

 private:
  void add_links(const Pair& pair) {
    GoldLinks links;
    if (!reader_->next(links))
      throw DataError(reader_->place() + ": is the last line of links, and " + pair.place + " has none; expected one line for each pair");
    if (pair.is_bad) return;
    const bool by_words = flags_.level == "word";
    const auto src = units_of(*vocabularies_.src, pair.src_text, pair.src, by_words);
    const auto tgt = units_of(*vocabularies_.tgt, pair.tgt_text, pair.tgt, by_words);
    for (const auto& [from, to] : links.possible) {
      if (static_cast<size_t>(from) >= src.size() || static_cast<size_t>(to) >= tgt.size())
        throw DataError(reader_->place() + ": link " + std::to_string(from) + "-" + std::to_string(to) + " is out of range; " + pair.place +
                        " has " + std::to_string(src.size()) + " and " + std::to_string(tgt.size()) + (by_words ? " words" : " tokens") +
                        ", counted from 0 (--level says what links name)");
      for (const TokenId f : src[static_cast<size_t>(from)])
        for (const TokenId e : tgt[static_cast<size_t>(to)]) links_.add(f, e);
    }
  }

  std::vector<TokenId> most_frequent() const {
    std::vector<TokenId> ids;
    for (size_t id = 0; id < frequencies_.size(); ++id)
      if (frequencies_[id] > 0) ids.push_back(static_cast<TokenId>(id));
    std::stable_sort(ids.begin(), ids.end(),
                     [&](TokenId a, TokenId b) { return frequencies_[static_cast<size_t>(a)] > frequencies_[static_cast<size_t>(b)]; });
    ids.resize(std::min(ids.size(), static_cast<size_t>(flags_.frequent)));
    return ids;
  }

  const ShortlistFlags& flags_;
  const Vocabularies& vocabularies_;
  std::optional<LinkReader> reader_;
  TokenPairs pairs_;
  int64_t bad_pairs_ = 0;
  LinkedTokenCounts links_;
  std::vector<int64_t> frequencies_;  // of target tokens
};

int run_shortlist(const std::vector<std::string>& arguments) {
  CommandLine app(
      "A lexical shortlist: which target tokens may translate which source tokens, so that translating need not weigh the whole "
      "vocabulary (lacuna translate --shortlist).",
      "lacuna shortlist");
  ShortlistFlags flags;
  flags.declare(app);
  if (!app.read(arguments)) return 0;
  flags.common.apply_log_level();
  use_threads(flags.common.threads);
  const Vocabularies vocabularies =
      read_while_replaced(flags.model, [&] { return load_checkpoint(resolve_checkpoint(flags.model)).vocabularies; });
  CorpusReader reader(flags.src, flags.tgt);
  Gatherer gatherer(flags, vocabularies);
  Output output(flags.output, {flags.src, flags.tgt});  // for its errors, before long work
  const auto room = [&] { return static_cast<size_t>(flags.max_pairs > 0 ? flags.max_pairs - gatherer.num_pairs() : INT64_MAX); };
  for (std::vector<Pair> pairs; !(pairs = next_pairs(reader, vocabularies, flags.bad_lines, std::min(kPairsAtATime, room()))).empty();)
    for (const Pair& pair : pairs) gatherer.add(pair);
  gatherer.require_pairs();
  const Shortlist shortlist = gatherer.shortlist(room() > 0);
  if (!output.write(shortlist.to_text())) return kBrokenPipe;
  output.finish();
  gatherer.report(shortlist);
  flags::require_none_passed_over(gatherer.bad_pairs(), gatherer.num_pairs());
  return 0;
}

}  // namespace

Verb shortlist_verb() {
  return {"shortlist", "which target tokens may translate which source tokens, for fast translating", run_shortlist};
}

}  // namespace lacuna
