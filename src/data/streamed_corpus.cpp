#include "data/streamed_corpus.h"

#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/spelling.h"
#include "data/corpus_cache.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// A folder that goes with the last who uses it.
class OwnFolder {
 public:
  explicit OwnFolder(fs::path path) : path_(std::move(path)) {}
  ~OwnFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

 private:
  fs::path path_;
};

}  // namespace

StreamedCorpus::StreamedCorpus(const CorpusOptions& corpus, DataOptions options, Vocabularies vocabularies, fs::path folder)
    : corpus_(corpus), options_(std::move(options)), vocabularies_(std::move(vocabularies)), folder_(std::move(folder)) {
  ContentHash hash;
  hash.add(fmt::format("stream {} {} {} {} {}", corpus.shuffle_lines, corpus.columns.at(0), corpus.columns.at(1), corpus.min_score.column,
                       corpus.min_score.at_least));
  hash.add(corpus.src_prefix);
  if (corpus.links_column > 0) hash.add(fmt::format("links {}", corpus.links_column));
  fingerprint_ = hash.text();
}

/// Opens the text, once somebody wants it: who does not leaves it to others.
void StreamedCorpus::open() {
  if (reader_) return;
  fs::remove_all(folder_);  // of a process that was killed
  fs::create_directories(folder_);
  reader_ = std::make_unique<CorpusReader>(corpus_, [this](const LineError& error, std::string_view /*line*/) {
    if (options_.bad_lines == OnBadLine::kStop) throw LineError(error.kind(), error.what() + std::string(kSkipInTraining));
    if (!bad_.kinds.contains(error.kind())) log_warning("lines are left out, {}; the first: {}", error.kind(), error.what());
    bad_.add(error);
  });
}

void StreamedCorpus::skip(int64_t blocks) {
  open();
  const int64_t lines = blocks * corpus_.shuffle_lines;
  if (blocks > 0) log_info("{}: passing over the {} that the run has trained on", name(), counted(lines, "line"));
  bool is_there = true;
  while (is_there && reader_->line_number() < lines && wait_for_line()) is_there = reader_->skip(1);
  if (!is_there)
    throw DataError(
        fmt::format("{}: it ends after {}, and the run has trained on {}; expected the same text again. If what feeds the pipe goes "
                    "on by itself, set skip_consumed: false beside stream",
                    name(), counted(reader_->line_number(), "line"), lines));
  end_of_block_ = lines;
  blocks_ = blocks;
}

/// Returns false once nobody wants the line any more.
bool StreamedCorpus::wait_for_line() {
  constexpr std::chrono::milliseconds kBetweenLooks{20};
  while (!is_stopped_ && interrupt_signal() == 0) {
    if (!reader_->would_wait()) return true;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  is_interrupted_ = true;
  return false;
}

/// Reads a pair of the block.
bool StreamedCorpus::next_pair(TextPair& pair) {
  TextPair& ahead = ahead_.pair;
  if (ahead_.line == 0) {
    if (reader_->line_number() >= end_of_block_ || !wait_for_line() || !reader_->next(ahead.src, ahead.tgt)) return false;
    ahead_.line = reader_->line_number();
    ahead.place = reader_->src_place();
    ahead.links = reader_->links();
  }
  if (ahead_.line > end_of_block_) return false;
  ahead_.line = 0;
  pair = std::move(ahead);
  return true;
}

std::shared_ptr<const TokenizedCorpus> StreamedCorpus::next() {
  open();
  const int64_t lines_before = reader_->line_number(), first_line = end_of_block_;
  end_of_block_ += corpus_.shuffle_lines;
  const fs::path folder = folder_ / std::to_string(blocks_++);
  fs::create_directories(folder);
  auto own_folder = std::make_shared<OwnFolder>(folder);
  const CacheParts parts = parts_of_cache(corpus_, options_);
  const PairSource source = [this](TextPair& pair) { return next_pair(pair); };
  DataSummary summary = write_cache_files(source, options_, vocabularies_, parts, folder);
  if (is_interrupted_) return nullptr;
  const bool is_at_end = reader_->line_number() == lines_before && ahead_.line == 0 && reader_->line_number() <= first_line;
  if (is_at_end) return nullptr;
  auto corpus = TokenizedCorpus::of(opened_cache_files(folder, summary, parts));
  return {corpus.get(), [corpus, own_folder = std::move(own_folder)](const TokenizedCorpus*) mutable {
            corpus.reset();  // unmaps the files
            own_folder.reset();
          }};
}

}  // namespace lacuna
