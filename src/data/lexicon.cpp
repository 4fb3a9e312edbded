#include "data/lexicon.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <utility>

#include "base/error.h"

namespace lacuna {
namespace {

constexpr TokenId kEmptyWord = kBos;        // no source sentence contains bos
constexpr float kLeastProbability = 1e-6f;  // less probable translations are dropped

/// Calls work(thread) on each of the threads and rethrows their first exception.
void on_threads(int64_t threads, const std::function<void(int64_t)>& work) {
  std::vector<std::future<void>> running;
  running.reserve(static_cast<size_t>(threads));
  for (int64_t thread = 0; thread < threads; ++thread) running.push_back(std::async(std::launch::async, work, thread));
  for (auto& one : running) one.get();
}

void keep_likeliest(std::vector<LexiconEntry>& entries, size_t kept) {
  const auto is_likelier = [](const LexiconEntry& a, const LexiconEntry& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.tgt < b.tgt;
  };
  const size_t count = std::min(kept, entries.size());
  std::partial_sort(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(count), entries.end(), is_likelier);
  entries.resize(count);
  entries.shrink_to_fit();
}

/// Iterates over source tokens, each with all sentences that contain it: its t(f | e) are an array indexed by f, so that nothing is
/// searched. Sums run in the order of the source tokens or of the pairs, whatever the number of threads.
class Model1 {
 public:
  Model1(const TokenPairs& pairs, const LexiconOptions& options) : pairs_(pairs), options_(options), masses_(pairs.tgt.size()) {
    lexicon_.resize(static_cast<size_t>(options.src_size));
    find_occurrences();
  }

  Lexicon learn() && {
    for (int64_t i = 0; i < options_.iterations; ++i) {
      add_up_masses();
      improve();
      is_first_ = false;
    }
    lexicon_[kEmptyWord].clear();
    return std::move(lexicon_);
  }

 private:
  /// The pairs in which each source token occurs, one entry per occurrence, in order: e has occurrences_[begin_[e]] to [begin_[e + 1]].
  void find_occurrences() {
    begin_.assign(lexicon_.size() + 1, 0);
    const auto for_tokens = [&](const auto& f) {
      for (int64_t pair = 0; pair < pairs_.size(); ++pair) {
        f(static_cast<size_t>(kEmptyWord), pair);
        for (int64_t i = pairs_.src_begin[static_cast<size_t>(pair)]; i < pairs_.src_begin[static_cast<size_t>(pair) + 1]; ++i)
          f(static_cast<size_t>(pairs_.src[static_cast<size_t>(i)]), pair);
      }
    };
    for_tokens([&](size_t e, int64_t) { ++begin_[e + 1]; });
    for (size_t e = 0; e < lexicon_.size(); ++e) begin_[e + 1] += begin_[e];
    std::vector<int64_t> next(begin_.begin(), begin_.end() - 1);
    occurrences_.resize(static_cast<size_t>(begin_.back()));
    for_tokens([&](size_t e, int64_t pair) { occurrences_[static_cast<size_t>(next[e]++)] = static_cast<uint32_t>(pair); });
  }

  /// Returns t(. | e) as a dense array over target tokens.
  class Row {
   public:
    Row(int64_t size, bool is_uniform) : values_(static_cast<size_t>(size), is_uniform ? 1.f : 0.f), is_uniform_(is_uniform) {}
    void load(const std::vector<LexiconEntry>& entries) { set(entries, true); }
    void unload(const std::vector<LexiconEntry>& entries) { set(entries, false); }
    float operator[](TokenId f) const { return values_[static_cast<size_t>(f)]; }

   private:
    void set(const std::vector<LexiconEntry>& entries, bool is_there) {
      if (is_uniform_) return;
      for (const LexiconEntry& entry : entries) values_[static_cast<size_t>(entry.tgt)] = is_there ? entry.probability : 0;
    }
    std::vector<float> values_;
    bool is_uniform_;
  };

  /// Calls f(token, place) for each target token of those pairs in [first, last) that contain e.
  template <class F>
  void for_targets(size_t e, uint32_t first, uint32_t last, F f) const {
    const auto end = occurrences_.begin() + static_cast<std::ptrdiff_t>(begin_[e + 1]);
    auto pair = std::lower_bound(occurrences_.begin() + static_cast<std::ptrdiff_t>(begin_[e]), end, first);
    for (; pair != end && *pair < last; ++pair)
      for (auto i = static_cast<size_t>(pairs_.tgt_begin[*pair]); i < static_cast<size_t>(pairs_.tgt_begin[*pair + 1]); ++i)
        f(pairs_.tgt[i], i);
  }

  /// Computes masses_[place], the sum of t(f | e) over the source tokens of the pair. Each thread takes some of the pairs.
  void add_up_masses() {
    std::fill(masses_.begin(), masses_.end(), 0.f);
    on_threads(options_.threads, [&](int64_t thread) {
      const auto first = static_cast<uint32_t>(pairs_.size() * thread / options_.threads);
      const auto last = static_cast<uint32_t>(pairs_.size() * (thread + 1) / options_.threads);
      Row row(options_.tgt_size, is_first_);
      for (size_t e = 0; e < lexicon_.size(); ++e) {
        row.load(lexicon_[e]);
        for_targets(e, first, last, [&](TokenId f, size_t place) { masses_[place] += row[f]; });
        row.unload(lexicon_[e]);
      }
    });
  }

  /// Computes the next t from the expected counts. Each thread takes one source token after another.
  void improve() {
    std::atomic<size_t> next = 0;
    on_threads(options_.threads, [&](int64_t) {
      Row row(options_.tgt_size, is_first_);
      std::vector<double> counts(static_cast<size_t>(options_.tgt_size));
      for (size_t e = next++; e < lexicon_.size(); e = next++) improve_row(e, row, counts);
    });
  }

  /// `counts` must be all zeros, and is so again afterwards.
  void improve_row(size_t e, Row& row, std::vector<double>& counts) {
    std::vector<LexiconEntry>& entries = lexicon_[e];
    row.load(entries);
    std::vector<TokenId> seen;
    double total = 0;
    for_targets(e, 0, UINT32_MAX, [&](TokenId f, size_t place) {
      if (row[f] == 0 || masses_[place] == 0) return;
      double& count = counts[static_cast<size_t>(f)];
      const double share = static_cast<double>(row[f]) / static_cast<double>(masses_[place]);
      if (count == 0) seen.push_back(f);
      count += share;
      total += share;
    });
    row.unload(entries);
    entries.clear();
    for (const TokenId f : seen) {
      const auto probability = static_cast<float>(std::exchange(counts[static_cast<size_t>(f)], 0) / total);
      if (e == kEmptyWord || probability >= kLeastProbability) entries.push_back({f, probability});
    }
    keep_likeliest(entries, e == kEmptyWord ? entries.size() : static_cast<size_t>(options_.kept));
  }

  const TokenPairs& pairs_;
  const LexiconOptions& options_;
  Lexicon lexicon_;
  bool is_first_ = true;  // t is uniform
  std::vector<int64_t> begin_;
  std::vector<uint32_t> occurrences_;
  std::vector<float> masses_;  // by target token
};

}  // namespace

void TokenPairs::add(std::span<const TokenId> source, std::span<const TokenId> target) {
  src.insert(src.end(), source.begin(), source.end());
  tgt.insert(tgt.end(), target.begin(), target.end());
  src_begin.push_back(static_cast<int64_t>(src.size()));
  tgt_begin.push_back(static_cast<int64_t>(tgt.size()));
}

Lexicon learn_lexicon(const TokenPairs& pairs, const LexiconOptions& options) {
  if (pairs.src.empty() || pairs.tgt.empty()) throw DataError("there are no pairs of sentences to learn translations of tokens from");
  if (pairs.size() >= UINT32_MAX)
    throw DataError("too many pairs of sentences: " + std::to_string(pairs.size()) + "; at most 4,294,967,294");
  return Model1(pairs, options).learn();
}

Lexicon LinkedTokenCounts::lexicon(int64_t kept) const {
  Lexicon lexicon;
  lexicon.reserve(counts_.size());
  for (const auto& of_token : counts_) {
    int64_t total = 0;
    for (const auto& [tgt, count] : of_token) total += count;
    std::vector<LexiconEntry>& entries = lexicon.emplace_back();
    for (const auto& [tgt, count] : of_token) entries.push_back({tgt, static_cast<float>(count) / static_cast<float>(total)});
    keep_likeliest(entries, static_cast<size_t>(kept));
  }
  return lexicon;
}

}  // namespace lacuna
