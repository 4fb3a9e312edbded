#pragma once

#include <filesystem>
#include <string>

#include "config/options.h"
#include "data/corpus.h"
#include "text/vocabulary.h"

namespace lacuna {

/// A folder of files that TokenizedCorpus maps: src.ids and tgt.ids (int32), src.offsets and tgt.offsets (uint64, one more than sentences),
/// with text also src.text, src.text_offsets and so on, and summary.json with the XXH3-128 of all that.
struct CorpusCache {
  std::filesystem::path folder;
  DataSummary summary;
  std::string fingerprint;
};

/// Finds or makes the cache of a corpus in `cache_folder`. Its name is a hash of the files' contents, the way they are read, the
/// vocabularies and the options that matter, so a cache of that name fits. One process at a time makes it, under a temporary name, and
/// renames it when it is on the disk. All bytes of a cache are checked, and a damaged one is made again. Throws as TokenizedCorpus::open
/// does, and DataError for a corpus that changes while it is read.
CorpusCache open_corpus_cache(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies,
                              const std::string& cache_folder, bool with_text);

}  // namespace lacuna
