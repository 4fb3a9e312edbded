#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/resources.h"
#include "data/corpus_cache.h"
#include "data/corpus_reader.h"
#include "text/invisible_characters.h"
#include "text/joiner.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr size_t kChunk = 1 << 13;       // pairs tokenized at a time by all threads together ...
constexpr size_t kChunkBytes = 1 << 25;  // ... or fewer, if they have more bytes
constexpr size_t kMostThreads = 16;
constexpr auto kBetweenReports = std::chrono::seconds(10);

template <class T>
std::string_view bytes_of(const T* values, size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}

/// Writes items of any size end to end to one file, and their offsets to another.
class ItemWriter {
 public:
  ItemWriter(const fs::path& items, const fs::path& offsets) : items_(items), offsets_(offsets) { write_offset(); }
  template <class T>
  void add(const T* values, size_t count) {
    items_.write(bytes_of(values, count));
    written_ += count;
    write_offset();
  }
  void finish() {
    items_.finish();
    offsets_.finish();
  }

 private:
  void write_offset() { offsets_.write(bytes_of(&written_, 1)); }

  FileWriter items_, offsets_;
  uint64_t written_ = 0;
};

class SideWriter {
 public:
  SideWriter(const fs::path& folder, const std::string& name, bool with_text)
      : ids_(folder / (name + ".ids"), folder / (name + ".offsets")) {
    if (with_text) text_.emplace(folder / (name + ".text"), folder / (name + ".text_offsets"));
  }
  void add(const std::vector<TokenId>& ids, const std::string& line) {
    ids_.add(ids.data(), ids.size());
    if (text_) text_->add(line.data(), line.size());
  }
  void finish() {
    ids_.finish();
    if (text_) text_->finish();
  }

 private:
  ItemWriter ids_;
  std::optional<ItemWriter> text_;
};

struct Pair : TextPair {
  std::vector<TokenId> src_ids, tgt_ids;
};

class CacheMaker {
 public:
  CacheMaker(const DataOptions& options, const Vocabularies& vocabularies, CacheParts parts, const fs::path& folder)
      : options_(options),
        vocabularies_(vocabularies),
        rejects_name_(folder / kRejectsOfCache),
        src_(folder, "src", parts.text),
        tgt_(folder, "tgt", parts.text) {
    if (parts.links) links_.emplace(folder / "links", folder / "links.offsets");
  }

  DataSummary make_of(const CorpusOptions& corpus) {
    total_ = count_pairs(corpus, options_.bad_lines, kSkipInTraining);
    CorpusReader reader(corpus, [this](const LineError& error, std::string_view line) { reject(error, line); });
    make_of(reader_of(reader), [&] {
      stop_if_interrupted("tokenizing " + corpus.files_text());
      report(reader.line_number());
    });
    summary_.lines = reader.line_number();
    summary_.low_scores = reader.low_scores();
    summary_.carriage_returns = reader.carriage_returns();
    summary_.other_line_ends = reader.other_line_ends();
    return summary_;
  }

  /// Calls `look` after each chunk.
  template <class Look>
  DataSummary make_of(const PairSource& next, const Look& look) {
    for (std::vector<Pair> chunk = read_chunk(next); !chunk.empty(); chunk = read_chunk(next)) {
      tokenize(chunk);
      for (Pair& pair : chunk) keep(pair);
      look();
    }
    src_.finish();
    tgt_.finish();
    if (links_) links_->finish();
    if (rejects_) rejects_->finish();
    return summary_;
  }

 private:
  static PairSource reader_of(CorpusReader& reader) {
    return [&reader](TextPair& pair) {
      if (!reader.next(pair.src, pair.tgt)) return false;
      pair.place = reader.src_place();
      pair.links = reader.links();
      return true;
    };
  }

  static std::vector<Pair> read_chunk(const PairSource& next) {
    std::vector<Pair> chunk;
    for (size_t bytes = 0; chunk.size() < kChunk && bytes < kChunkBytes;) {
      Pair pair;
      if (!next(pair)) break;
      bytes += pair.src.size() + pair.tgt.size();
      chunk.push_back(std::move(pair));
    }
    return chunk;
  }

  void reject(const LineError& error, std::string_view line) {
    if (options_.bad_lines == OnBadLine::kStop) throw LineError(error);  // the text has changed since it was looked through
    if (!rejects_) rejects_.emplace(rejects_name_);
    rejects_->write(reject_line(error, line));
    summary_.bad.add(error);
  }

  void tokenize(std::vector<Pair>& chunk) const {
    const auto work = [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        change_source(chunk[i]);
        chunk[i].src_ids = vocabularies_.src->encode(chunk[i].src);
        chunk[i].tgt_ids = vocabularies_.tgt->encode(chunk[i].tgt);
      }
    };
    const size_t threads = std::min(static_cast<size_t>(thread_count()), kMostThreads), part = chunk.size() / threads + 1;
    std::vector<std::future<void>> others;
    for (size_t t = 1; t < threads; ++t)
      others.push_back(std::async(std::launch::async, work, std::min(t * part, chunk.size()), std::min((t + 1) * part, chunk.size())));
    work(0, std::min(part, chunk.size()));
    for (std::future<void>& other : others) other.get();  // rethrows the thread's exception
  }

  /// Takes invisible characters out of the source. Where a word consisted of them, links no longer name the right ones: it has none then.
  void change_source(Pair& pair) const {
    std::string text = source_text(*vocabularies_.src, pair.src);
    if (!pair.links.empty() && joined_words(text, "").back() != joined_words(pair.src, "").back()) pair.links.clear();
    pair.src = std::move(text);
  }

  void keep(Pair& pair) {
    if (pair.src_ids.empty() || pair.tgt_ids.empty()) {
      ++summary_.empty;
      return;
    }
    if (is_uneven(pair)) {
      ++summary_.uneven;
      return;
    }
    if (!make_fit(pair)) {
      ++summary_.skipped;
      return;
    }
    ++summary_.kept;
    write(src_, pair.src_ids, pair.src, summary_.src_tokens, summary_.src_unk, summary_.src_lengths);
    write(tgt_, pair.tgt_ids, pair.tgt, summary_.tgt_tokens, summary_.tgt_unk, summary_.tgt_lengths);
    if (links_) links_->add(pair.links.data(), pair.links.size());
  }

  /// True if the lengths differ by more than data.max_length_ratio.
  bool is_uneven(const Pair& pair) const {
    const auto [shorter, longer] = std::minmax({pair.src_ids.size(), pair.tgt_ids.size()});
    return options_.max_length_ratio > 0 && static_cast<double>(longer) > options_.max_length_ratio * static_cast<double>(shorter);
  }

  /// Treats a pair longer than data.max_length as data.long says. Returns false if the pair is to be skipped.
  bool make_fit(Pair& pair) {
    const auto limit = static_cast<size_t>(options_.max_length);
    const size_t longest = std::max(pair.src_ids.size(), pair.tgt_ids.size());
    if (longest <= limit) return true;
    if (options_.long_lines == LongLines::kError)
      throw DataError(pair.place + ": the sentence pair has " + std::to_string(longest) + " tokens; data.max_length is " +
                      std::to_string(limit) + ": raise it, or set data.long to skip or crop");
    if (options_.long_lines == LongLines::kSkip) return false;
    ++summary_.cropped;
    pair.src_ids.resize(std::min(pair.src_ids.size(), limit));
    pair.tgt_ids.resize(std::min(pair.tgt_ids.size(), limit));
    return true;
  }

  static void write(SideWriter& side, std::vector<TokenId>& ids, const std::string& line, int64_t& tokens, int64_t& unknown,
                    std::array<int64_t, 16>& lengths) {
    unknown += std::count(ids.begin(), ids.end(), kUnk);
    ids.push_back(kEos);
    side.add(ids, line);
    tokens += std::ssize(ids);
    ++lengths[std::min(ids.size() / 16, lengths.size() - 1)];
  }

  void report(int64_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_report_ < kBetweenReports) return;
    last_report_ = now;
    log_info("tokenized {} of {} pairs", done, total_);
  }

  const DataOptions& options_;
  const Vocabularies& vocabularies_;
  const fs::path rejects_name_;
  SideWriter src_, tgt_;
  std::optional<ItemWriter> links_;
  std::optional<FileWriter> rejects_;
  DataSummary summary_;
  int64_t total_ = 0;
  std::chrono::steady_clock::time_point last_report_ = std::chrono::steady_clock::now();
};

}  // namespace

DataSummary write_cache_files(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies, CacheParts parts,
                              const fs::path& folder) {
  return CacheMaker(options, vocabularies, parts, folder).make_of(corpus);
}

DataSummary write_cache_files(const PairSource& next, const DataOptions& options, const Vocabularies& vocabularies, CacheParts parts,
                              const std::filesystem::path& folder) {
  return CacheMaker(options, vocabularies, parts, folder).make_of(next, [] {});
}

}  // namespace lacuna
