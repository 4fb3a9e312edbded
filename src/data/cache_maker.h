#pragma once

#include <filesystem>

#include "config/options.h"
#include "data/corpus.h"
#include "text/vocabulary.h"

namespace lacuna {

/// Reads, checks, tokenises and filters a corpus, and writes the files of its cache (corpus_cache.h) into `folder`, all but summary.json,
/// on the disk when it returns. Memory is that of a few thousand pairs. Errors as TokenizedCorpus::open.
DataSummary write_cache_files(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies, bool with_text,
                              const std::filesystem::path& folder);

}  // namespace lacuna
