#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "config/options.h"
#include "data/corpus.h"
#include "data/word_links.h"
#include "text/vocabulary.h"

namespace lacuna {

inline constexpr char kRejectsOfCache[] = "rejects.tsv";

/// What a cache holds beside ids.
struct CacheParts {
  bool text = false;   ///< for sampling subwords, and for links
  bool links = false;  ///< between words
};
CacheParts parts_of_cache(const CorpusOptions& corpus, const DataOptions& options);

/// A folder of files that TokenizedCorpus reads: src.ids and tgt.ids (int32), src.offsets and tgt.offsets (uint64, one more than
/// sentences), with text also src.text, src.text_offsets and so on, with links of words links and links.offsets, kRejectsOfCache if there
/// are bad lines, and summary.json with the XXH3-128 of all that.
struct CorpusCache {
  std::filesystem::path folder;
  DataSummary summary;
  CorpusSide src, tgt;
  std::optional<MappedItems<WordLink>> links;
  std::string fingerprint;
};

/// Finds or makes the cache of a corpus in `cache_folder`, named by a hash of all that it depends on. One process at a
/// time makes it, under a temporary name. All bytes are checked as they are opened; a damaged cache is made again. Throws as
/// TokenizedCorpus::open does, and DataError for a corpus that changes while it is read.
CorpusCache open_corpus_cache(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies,
                              const std::string& cache_folder, CacheParts parts);

/// Reads, checks, tokenizes and filters a corpus, and writes all files of its CorpusCache but summary.json to `folder`, synced
/// to disk. Holds a few thousand pairs in memory. Throws as TokenizedCorpus::open does.
DataSummary write_cache_files(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies, CacheParts parts,
                              const std::filesystem::path& folder);

/// A pair of sentences, the links between its words, and its place, for errors.
struct TextPair {
  std::string src, tgt, place;
  WordLinks links = {};
};

/// Gives the next pair; false at the end.
using PairSource = std::function<bool(TextPair& pair)>;

/// Does that for pairs that are read already: of the summary, only what tokenizing and filtering count. Throws DataError for a sentence
/// that is too long if `data.long` is error.
DataSummary write_cache_files(const PairSource& next, const DataOptions& options, const Vocabularies& vocabularies, CacheParts parts,
                              const std::filesystem::path& folder);
/// Opens the files that this wrote to `folder`.
CorpusCache opened_cache_files(const std::filesystem::path& folder, const DataSummary& summary, CacheParts parts);

}  // namespace lacuna
