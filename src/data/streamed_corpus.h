#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "config/options.h"
#include "data/bad_lines.h"
#include "data/corpus.h"
#include "data/corpus_cache.h"
#include "data/corpus_reader.h"
#include "text/vocabulary.h"

namespace lacuna {

/// Text that is read once, as it comes: a pipe, in blocks of CorpusOptions::shuffle_lines lines. A block is tokenized and filtered as any
/// corpus, into files of its own, which go with it.
class StreamedCorpus {
 public:
  /// `corpus` is the stream of `options`; `folder`, which is emptied, is for the files of blocks. Nothing is read yet.
  StreamedCorpus(const CorpusOptions& corpus, DataOptions options, Vocabularies vocabularies, std::filesystem::path folder);

  /// Passes over the lines of the first `blocks` blocks. Throws DataError if there are fewer.
  void skip(int64_t blocks);
  /// Returns the next block, which may have no pair left; null at the end of the text, and once it is interrupted. Waits for its lines.
  /// Throws what TokenizedCorpus::open throws for a wrong line.
  std::shared_ptr<const TokenizedCorpus> next();
  /// Makes `next` return soon. May be called by any thread.
  void stop() { is_stopped_ = true; }
  /// True if a signal or stop() has ended reading before the text did.
  bool is_interrupted() const { return is_interrupted_; }
  /// Lines of a block.
  int64_t block_lines() const { return corpus_.shuffle_lines; }
  /// True if a run that goes on passes over the lines that it has trained on.
  bool skips_consumed() const { return corpus_.skip_consumed; }
  /// Hash of how lines are read, in place of that of their contents, which nobody knows.
  const std::string& fingerprint() const { return fingerprint_; }
  /// Name of the text, for messages.
  std::string name() const { return corpus_.tsv == "-" ? "stdin" : corpus_.tsv; }

 private:
  bool next_pair(TextPair& pair);
  bool wait_for_line();
  void open();

  CorpusOptions corpus_;
  DataOptions options_;
  Vocabularies vocabularies_;
  std::filesystem::path folder_;
  std::string fingerprint_;
  std::unique_ptr<CorpusReader> reader_;  // null = not opened yet
  int64_t end_of_block_ = 0;              // the number of its last line
  struct {
    TextPair pair;
    int64_t line = 0;  // 0 = none
  } ahead_;            // a pair of a later block, read as lines before it were passed over
  BadLines bad_;
  int64_t blocks_ = 0;
  std::atomic<bool> is_stopped_ = false, is_interrupted_ = false;
};

}  // namespace lacuna
