#include "analysis/filter_corpus.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/log.h"
#include "base/output.h"
#include "base/progress_bar.h"
#include "base/spelling.h"
#include "config/on_bad_line.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr size_t kExamples = 20;

const std::map<std::string, FilterBy> kRankings = {{"null_rate", FilterBy::kNullRate},
                                                   {"null_contrast", FilterBy::kNullContrast},
                                                   {"log_prob", FilterBy::kLogProb},
                                                   {"both", FilterBy::kBoth}};

constexpr const char* kFiles[] = {"kept.src", "kept.tgt", "dropped.src", "dropped.tgt", "scores.tsv", "report.txt"};

/// Returns the name of the ranking.
std::string ranking_of(const LoadedModel& loaded, const FilterFlags& flags) {
  const bool has_nulls = has_null_rows(loaded.options.model);
  if (flags.by.empty()) return has_nulls ? "null_rate" : "log_prob";
  if (flags.by != "log_prob" && !has_nulls)
    throw ConfigError("--by " + flags.by +
                      ": no cross attention of this model can attend to nothing, so its null rate is 0 for every pair. " +
                      "Say --by log_prob, or take a model with `cross: rela`");
  return flags.by;
}

/// Marks the pairs that are kept: the best `keep` of all, never one without scores.
std::vector<bool> choose(const std::vector<PairScore>& scores, const std::vector<size_t>& order, double keep) {
  std::vector<bool> is_kept(scores.size(), false);
  const auto count = static_cast<size_t>(std::llround(keep * static_cast<double>(scores.size())));
  for (size_t i = 0; i < count; ++i) is_kept[order[i]] = scores[order[i]].is_scored;
  return is_kept;
}

/// The pairs that the report shows, by line.
class Examples {
 public:
  Examples(const std::vector<size_t>& order, size_t scored) {
    for (size_t i = 0; i < std::min(kExamples, scored); ++i) {
      best_.push_back(order[i]);
      worst_.push_back(order[scored - 1 - i]);
    }
    for (const size_t line : best_) texts_[line] = {};
    for (const size_t line : worst_) texts_[line] = {};
  }

  void see(size_t line, const std::string& src, const std::string& tgt) {
    if (const auto found = texts_.find(line); found != texts_.end()) found->second = {src, tgt};
  }

  std::string text(const std::vector<PairScore>& scores) const {
    return "The worst pairs, the worst first:\n\n" + listed(worst_, scores) + "The best pairs, the best first:\n\n" + listed(best_, scores);
  }

 private:
  std::string listed(const std::vector<size_t>& lines, const std::vector<PairScore>& scores) const {
    std::string text;
    for (const size_t line : lines) {
      const auto& [src, tgt] = texts_.at(line);
      text += fmt::format("line {}, null rate {:.4f}, log-probability of a token {:.4f}\n  {}\n  {}\n\n", line + 1, scores[line].null_rate,
                          scores[line].log_prob, src, tgt);
    }
    return text;
  }

  std::vector<size_t> best_, worst_;
  std::map<size_t, std::pair<std::string, std::string>> texts_;
};

/// A line of scores.tsv; null contrasts, where pairs are not ranked by them, are unknown.
std::string table_line(size_t line, const PairScore& score, bool has_contrast, bool is_kept) {
  if (!score.is_scored) return fmt::format("{}\tnan\tnan\tnan\t0\n", line);
  const std::string contrast = has_contrast ? fmt::format("{:.6f}", score.null_contrast) : "nan";
  return fmt::format("{}\t{:.6f}\t{}\t{:.6f}\t{}\n", line, score.null_rate, contrast, score.log_prob, is_kept ? 1 : 0);
}

/// Copies the pairs to the files of kept and dropped ones, and writes their scores and a report that begins with `summary`.
void write_files(const FilterCorpus& corpus, const fs::path& folder, const std::vector<PairScore>& scores, FilterBy by,
                 const std::vector<bool>& is_kept, Examples& examples, const std::string& summary) {
  Output kept_src(folder / "kept.src"), kept_tgt(folder / "kept.tgt"), dropped_src(folder / "dropped.src"),
      dropped_tgt(folder / "dropped.tgt"), table(folder / "scores.tsv"), report(folder / "report.txt");
  table.write("line\tnull_rate\tnull_contrast\tlog_prob\tkept\n");
  CorpusReader reader(corpus.src, corpus.tgt);
  std::string src, tgt;
  for (size_t i = 0; i < scores.size(); ++i) {
    try {
      if (!reader.next(src, tgt)) break;
    } catch (const LineError&) {  // of a pair that was passed over
      src.clear();
      tgt.clear();
    }
    (is_kept[i] ? kept_src : dropped_src).write(src + "\n");
    (is_kept[i] ? kept_tgt : dropped_tgt).write(tgt + "\n");
    table.write(table_line(i + 1, scores[i], by == FilterBy::kNullContrast, is_kept[i]));
    examples.see(i, src, tgt);
  }
  report.write(summary + "\n" + examples.text(scores));
  finish_together({&kept_src, &kept_tgt, &dropped_src, &dropped_tgt, &table, &report});
}

/// Returns the mean scores of the kept or of the dropped pairs as a line.
std::string described(const char* name, const std::vector<PairScore>& scores, const std::vector<bool>& is_kept, bool of_kept) {
  double null_rate = 0, log_prob = 0;
  size_t count = 0, scored = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (is_kept[i] != of_kept) continue;
    ++count;
    if (!scores[i].is_scored) continue;
    ++scored;
    null_rate += static_cast<double>(scores[i].null_rate);
    log_prob += static_cast<double>(scores[i].log_prob);
  }
  if (scored == 0) return fmt::format("{}: {}\n", name, counted(static_cast<int64_t>(count), "pair"));
  return fmt::format("{}: {}, mean null rate {:.4f}, mean log-probability of a token {:.4f}\n", name,
                     counted(static_cast<int64_t>(count), "pair"), null_rate / static_cast<double>(scored),
                     log_prob / static_cast<double>(scored));
}

}  // namespace

FilterScorer::FilterScorer(const LoadedModel& loaded, const FilterCorpus& corpus, const FilterFlags& flags)
    : loaded_(loaded), corpus_(corpus), by_(ranking_of(loaded, flags)) {
  make_output_folder(flags.folder);
  for (const char* const name : kFiles) require_not_read(fs::path(flags.folder) / name, {corpus.src, corpus.tgt});
  if (kRankings.at(by_) != FilterBy::kNullContrast) return;
  constexpr int64_t kSample = 5000;  // spread evenly over the corpus
  const int64_t num_pairs = count_pairs({.src = corpus.src, .tgt = corpus.tgt}, corpus.bad_lines, kHowToSkip);
  const int64_t step = std::max<int64_t>(1, (num_pairs + kSample - 1) / kSample);
  std::optional<PairReader> reader;
  open(reader);
  const std::vector<SentencePair> sample = reader->next(kSample, step);
  try {
    contrast_ = null_contrast_of(*loaded.model, sample, corpus.batch_tokens);
  } catch (const DataError& error) {
    throw DataError(corpus.src + " and " + corpus.tgt + ": " + error.what());
  }
}

void FilterScorer::open(std::optional<PairReader>& reader) const {
  reader.emplace(corpus_.src, corpus_.tgt, loaded_.vocabularies, longest_to_look_at(loaded_.model->max_positions()), LongPairs::kMark,
                 corpus_.bad_lines);
}

std::vector<PairScore> FilterScorer::scores_of(const std::vector<SentencePair>& pairs) const {
  return score_pairs(*loaded_.model, pairs, corpus_.batch_tokens, contrast_ ? &*contrast_ : nullptr);
}

void write_filtered(const FilterCorpus& corpus, const FilterFlags& flags, const std::string& by, const std::vector<PairScore>& scores,
                    int64_t bad_pairs) {
  const FilterBy ranking = kRankings.at(by);
  const auto scored = static_cast<size_t>(std::count_if(scores.begin(), scores.end(), [](const PairScore& one) { return one.is_scored; }));
  if (scored == 0)
    throw DataError(corpus.src + " and " + corpus.tgt + ": no pair to rank: " +
                    why_none_is_left(bad_pairs, std::ssize(scores), "empty on a side, or longer than what the model can look at"));
  const std::vector<size_t> order = ranked(scores, ranking);
  const std::vector<bool> is_kept = choose(scores, order, flags.keep);
  Examples examples(order, scored);
  std::string summary = fmt::format("{} ranked by {}", counted(std::ssize(scores), "pair"), by);
  if (scored < scores.size())
    summary +=
        fmt::format("; {} have an empty side, are too long for the model, or cannot be taken, and are dropped", scores.size() - scored);
  summary.append("\n").append(described("kept", scores, is_kept, true)).append(described("dropped", scores, is_kept, false));
  write_files(corpus, flags.folder, scores, ranking, is_kept, examples, summary);
  log_info("{}: {} of {} pairs kept, ranked by {}", flags.folder, std::count(is_kept.begin(), is_kept.end(), true), scores.size(), by);
}

std::pair<int64_t, int64_t> filter_corpus(const LoadedModel& loaded, const FilterCorpus& corpus, const FilterFlags& flags) {
  const FilterScorer scorer(loaded, corpus, flags);
  LineProgress bar("scoring", count_pairs({.src = corpus.src, .tgt = corpus.tgt}, corpus.bad_lines, kHowToSkip), corpus.is_quiet);
  std::vector<PairScore> scores;
  int64_t bad_pairs = 0;
  std::optional<PairReader> reader;
  scorer.open(reader);
  for (std::vector<SentencePair> pairs; !(pairs = reader->next(kLinesAtATime)).empty();) {
    const std::vector<PairScore> more = scorer.scores_of(pairs);
    scores.insert(scores.end(), more.begin(), more.end());
    bad_pairs += count_passed_over(pairs);
    bar.add(std::ssize(pairs));
  }
  write_filtered(corpus, flags, scorer.by(), scores, bad_pairs);
  return {std::ssize(scores), bad_pairs};
}

int64_t count_passed_over(const std::vector<SentencePair>& pairs) {
  return std::ranges::count_if(pairs, [](const SentencePair& pair) { return !pair.error.empty(); });
}

}  // namespace lacuna
