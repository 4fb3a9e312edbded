#pragma once

#include <filesystem>

#include "config/options.h"
#include "data/corpus.h"
#include "text/vocabulary.h"

namespace lacuna {

/// Reads, checks, tokenizes and filters a corpus, and writes all files of its cache (corpus_cache.h) but summary.json to `folder`, synced
/// to disk. Holds a few thousand pairs in memory. Throws as TokenizedCorpus::open does.
DataSummary write_cache_files(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies, bool with_text,
                              const std::filesystem::path& folder);

}  // namespace lacuna
