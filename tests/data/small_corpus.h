#pragma once

#include <spdlog/fmt/fmt.h>

#include <memory>
#include <string>
#include <vector>

#include "../base/scratch_folder.h"
#include "base/random.h"
#include "config/options.h"
#include "data/batch_maker.h"
#include "data/corpus.h"
#include "text/vocabulary.h"

namespace lacuna {

/// Files, options and a vocabulary of the words w0 .. w49 for a test.
struct SmallCorpus {
  ScratchFolder folder;
  DataOptions options;
  Vocabularies vocabularies;

  SmallCorpus() {
    std::string words;
    for (int i = 0; i < 50; ++i) words += fmt::format("w{}\n", i);
    vocabularies.src = vocabularies.tgt = token_list_from_bytes(words, "words");
    options.tokenizer = Tokenizer::kNone;
    options.max_length = 20;
    std::filesystem::create_directory(folder / "run");
  }

  std::string cache() const { return folder / "cache"; }
  CorpusOptions write(const std::string& src, const std::string& tgt, const std::string& name = "train") const {
    CorpusOptions corpus;
    corpus.src = folder.write(name + ".src", src);
    corpus.tgt = folder.write(name + ".tgt", tgt);
    return corpus;
  }
  CorpusOptions write_tsv(const std::string& lines, const std::string& name = "train") const {
    return {.tsv = folder.write(name + ".tsv", lines)};
  }
  std::shared_ptr<const TokenizedCorpus> open(const CorpusOptions& corpus) const {
    return TokenizedCorpus::open(corpus, options, vocabularies, cache());
  }
  std::shared_ptr<const TokenizedCorpus> open(const std::string& src, const std::string& tgt, const std::string& name = "train") const {
    return open(write(src, tgt, name));
  }
  /// What a cache folder holds, the lock left out.
  size_t num_caches() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(cache())) count += entry.path().filename() != "lock";
    return count;
  }
};

/// Lines of 1 to 12 words.
inline std::string random_lines(int lines, uint64_t seed) {
  RandomStream random(seed);
  std::string text;
  for (int i = 0; i < lines; ++i) {
    for (uint64_t n = 1 + random.next_below(12); n > 0; --n) text += fmt::format("w{}{}", random.next_below(50), n > 1 ? " " : "\n");
  }
  return text;
}

inline bool operator==(const Batch& a, const Batch& b) {
  return a.src == b.src && a.tgt == b.tgt && a.src_shape->offsets() == b.src_shape->offsets() &&
         a.tgt_shape->offsets() == b.tgt_shape->offsets() && a.src_shape->ids() == b.src_shape->ids();
}

}  // namespace lacuna
