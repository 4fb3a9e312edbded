#include "data/corpus_cache.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <vector>

#include "base/content_hash.h"
#include "base/durable_files.h"
#include "base/error.h"
#include "base/file_lock.h"
#include "base/log.h"

namespace lacuna {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BadLines::Kind, lines, first)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BadLines, kinds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DataSummary, lines, kept, empty, skipped, uneven, low_scores, cropped, bad, carriage_returns,
                                   other_line_ends, src_tokens, tgt_tokens, src_unk, tgt_unk, src_lengths, tgt_lengths)

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kFormat = 6;
constexpr char kHash[] = "xxh3_128";
constexpr std::string_view kUnfinished = ".unfinished";
constexpr size_t kHashDigits = 32;   // the length of a cache's name, ContentHash::text()
constexpr size_t kRandomDigits = 8;  // follow the name and kUnfinished while it is made

/// The lock of a process that makes something in a cache folder. Without locks two processes do the same work, under different names.
void take(FileLock& lock, const fs::path& folder) {
  if (lock.try_take()) return;
  const std::string what = "waiting for another process that is making a token cache in " + folder.string();
  log_info("{}", what);
  lock.take_within(std::chrono::hours::max(), what);
}

CorpusSide open_side(const fs::path& folder, const std::string& side, CacheParts parts) {
  CorpusSide opened = {{folder / (side + ".ids"), folder / (side + ".offsets")}, {}};
  if (parts.text) opened.text.emplace(folder / (side + ".text"), folder / (side + ".text_offsets"));
  return opened;
}

std::optional<MappedItems<WordLink>> open_links(const fs::path& folder, CacheParts parts) {
  if (!parts.links) return {};
  return MappedItems<WordLink>(folder / "links", folder / "links.offsets");
}

CorpusCache opened(const fs::path& folder, const DataSummary& summary, CacheParts parts) {
  return {folder, summary, open_side(folder, "src", parts), open_side(folder, "tgt", parts), open_links(folder, parts), {}};
}

/// Hash of a summary and of every file it covers: otherwise training would use a damaged file of the right size.
std::string hash_of_cache(const CorpusCache& cache) {
  ContentHash hash;
  hash.add(json(cache.summary).dump());
  for (const CorpusSide* side : {&cache.src, &cache.tgt}) {
    side->ids.add_to(hash);
    if (side->text) side->text->add_to(hash);
  }
  if (cache.links) cache.links->add_to(hash);
  if (cache.summary.bad.count() > 0) hash.add(hash_of_files({(cache.folder / kRejectsOfCache).string()}));
  return hash.text();
}

void write_summary(const fs::path& folder, const DataSummary& summary, CacheParts parts) {
  json value = summary;
  value[kHash] = hash_of_cache(opened(folder, summary, parts));
  write_file_atomically(folder / "summary.json", value.dump(2) + "\n");
}

/// A hash that fits does not tell who wrote the files: true if each sentence lies in them, and each id in the vocabulary.
bool is_sound(const CorpusSide& side, int64_t sentences, const Vocabulary& vocabulary) {
  if (!side.ids.holds(sentences) || (side.text && !side.text->holds(sentences))) return false;
  return std::ranges::all_of(side.ids.all(), [size = vocabulary.size()](TokenId id) { return id >= 0 && id < size; });
}

/// Opens a cache that exists and is undamaged.
std::optional<CorpusCache> find_cache(const fs::path& folder, const Vocabularies& vocabularies, CacheParts parts) {
  if (!fs::exists(folder)) return {};
  try {
    const auto value = json::parse(read_file(folder / "summary.json"));
    CorpusCache cache = opened(folder, value.get<DataSummary>(), parts);
    const int64_t sentences = cache.summary.kept;
    if (value.at(kHash) == hash_of_cache(cache) && is_sound(cache.src, sentences, *vocabularies.src) &&
        is_sound(cache.tgt, sentences, *vocabularies.tgt) && (!cache.links || cache.links->holds(sentences)))
      return cache;
  } catch (const json::exception&) {  // reported below
  } catch (const DataError&) {
  }
  log_warning("{}: the token cache is damaged; it is made anew", folder.string());
  return {};
}

/// True for names that `new_unfinished` makes. The cache folder may be one of the user's, with other files in it.
bool is_unfinished(std::string_view name) {
  if (name.size() != kHashDigits + kUnfinished.size() + kRandomDigits || name.substr(kHashDigits, kUnfinished.size()) != kUnfinished)
    return false;
  const auto are_digits = [](std::string_view text) { return text.find_first_not_of("0123456789abcdef") == std::string_view::npos; };
  return are_digits(name.substr(0, kHashDigits)) && are_digits(name.substr(kHashDigits + kUnfinished.size()));
}

/// Removes what killed processes left. REQUIRES: the lock is held. Files of other users that cannot be removed stay.
void remove_unfinished(const fs::path& cache_folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(cache_folder))
    if (is_unfinished(entry.path().filename().string())) fs::remove_all(entry.path(), ignored);
}

/// Makes a folder of this process alone, with a random name: processes of other machines may have the same number.
fs::path new_unfinished(const fs::path& folder) {
  std::random_device random;
  for (;;) {
    fs::path unfinished = fmt::format("{}{}{:0{}x}", folder.string(), kUnfinished, random(), kRandomDigits);
    if (fs::create_directory(unfinished)) return unfinished;
  }
}

/// Hash of what CorpusReader reads: the files' contents, and columns and prefix if there are any.
std::string fingerprint_of(const CorpusOptions& corpus) {
  std::vector<std::string> files;
  for (const auto& [file, what] : corpus.files()) files.push_back(file);
  if (!corpus.links.empty()) files.push_back(corpus.links);
  std::string contents = hash_of_files(files);
  if (corpus.tsv.empty() && corpus.src_prefix.empty()) return contents;
  ContentHash hash;
  hash.add(contents);
  hash.add(corpus.tsv.empty() ? "" : fmt::format("columns {} {}", corpus.columns.at(0), corpus.columns.at(1)));
  hash.add(corpus.src_prefix);
  if (corpus.min_score.column > 0) hash.add(fmt::format("score {} {}", corpus.min_score.column, corpus.min_score.at_least));
  if (corpus.links_column > 0) hash.add(fmt::format("links {}", corpus.links_column));
  return hash.text();
}

/// Throws if the text has changed since it was hashed: its cache would be kept under the hash of another text.
void require_unchanged(const CorpusOptions& corpus, const std::string& fingerprint) {
  if (fingerprint_of(corpus) == fingerprint) return;
  throw DataError(corpus.files_text(" or ") + ": it changed while it was read; start again when nothing writes to it");
}

/// Makes the cache of the corpus with this fingerprint in `folder`.
void make_cache(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies, const std::string& fingerprint,
                const fs::path& folder, CacheParts parts) {
  log_info("tokenizing {}", corpus.files_text());
  const fs::path unfinished = new_unfinished(folder);
  try {
    const DataSummary summary = write_cache_files(corpus, options, vocabularies, parts, unfinished);
    write_summary(unfinished, summary, parts);
    require_unchanged(corpus, fingerprint);
    if (find_cache(folder, vocabularies, parts)) {  // without locks: made by a faster process, which may be reading it
      fs::remove_all(unfinished);
      return;
    }
    fs::rename(unfinished, folder);
    sync_folder_or_warn(folder.parent_path());
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);
    throw;
  }
}

CorpusCache find_or_make(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies,
                         const std::string& fingerprint, const fs::path& folder, CacheParts parts) {
  try {
    if (auto found = find_cache(folder, vocabularies, parts)) return std::move(*found);
    fs::create_directory(folder.parent_path());
    FileLock lock(folder.parent_path() / "lock");
    take(lock, folder.parent_path());
    if (auto found = find_cache(folder, vocabularies, parts)) return std::move(*found);  // made by the process that held the lock
    fs::remove_all(folder);                                                              // it is damaged
    if (lock.is_held()) remove_unfinished(folder.parent_path());
    make_cache(corpus, options, vocabularies, fingerprint, folder, parts);
    if (auto made = find_cache(folder, vocabularies, parts)) return std::move(*made);
    throw MachineError(folder.string() + ": the token cache changed as soon as it was made; start again when nothing writes to it");
  } catch (const fs::filesystem_error& error) {
    throw MachineError(folder.string() + ": the token cache cannot be made: " + error.code().message() +
                       "; data.cache may name another folder");
  }
}

std::string hash_of_inputs(const std::string& fingerprint, const DataOptions& options, const Vocabularies& vocabularies, CacheParts parts) {
  ContentHash hash;
  hash.add(fmt::format("{} {} {} {} {} {} {}", kFormat, fingerprint, options.max_length, static_cast<int>(options.long_lines),
                       options.max_length_ratio, parts.text, static_cast<int>(options.bad_lines)));
  if (parts.links) hash.add("links");
  hash.add(vocabularies.src->serialized());
  hash.add(vocabularies.tgt->serialized());
  return hash.text();
}

}  // namespace

CacheParts parts_of_cache(const CorpusOptions& corpus, const DataOptions& options) {
  return {.text = options.spm_alpha > 0 || corpus.has_links(), .links = corpus.has_links()};
}

CorpusCache opened_cache_files(const fs::path& folder, const DataSummary& summary, CacheParts parts) {
  return opened(folder, summary, parts);
}

CorpusCache open_corpus_cache(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies,
                              const std::string& cache_folder, CacheParts parts) {
  for (const auto& [file, what] : corpus.files()) require_corpus_file(file, what);
  if (!corpus.links.empty()) require_corpus_file(corpus.links, "word alignments");
  const std::string fingerprint = fingerprint_of(corpus);
  const fs::path folder = fs::absolute(cache_folder) / hash_of_inputs(fingerprint, options, vocabularies, parts);
  CorpusCache cache = find_or_make(corpus, options, vocabularies, fingerprint, folder, parts);
  cache.fingerprint = fingerprint;
  if (cache.summary.kept == 0)
    throw DataError(corpus.files_text() + ": no sentence pair is left to train on (" + cache.summary.text() + ")" +
                    (cache.summary.skipped > 0 ? "; data.max_length is " + std::to_string(options.max_length) : ""));
  return cache;
}

}  // namespace lacuna
