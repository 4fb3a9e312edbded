#include "data/corpus_cache.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/file.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/log.h"
#include "data/cache_maker.h"

namespace lacuna {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DataSummary, lines, kept, empty, skipped, cropped, carriage_returns, other_line_ends, src_tokens,
                                   tgt_tokens, src_unk, tgt_unk, src_lengths, tgt_lengths)

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kFormat = 3;
constexpr char kHash[] = "xxh3_128";
const std::string kUnfinished = ".unfinished";

/// Held by the process that makes something in a cache folder; gone with the process, however it ends.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder) : file_(open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (file_ < 0) throw MachineError(folder.string() + ": cannot be written: " + std::strerror(errno));
    is_held_ = flock(file_, LOCK_EX | LOCK_NB) == 0;
    if (is_held_) return;
    if (errno == EWOULDBLOCK) log_info("waiting for another process that is making a token cache in {}", folder.string());
    is_held_ = flock(file_, LOCK_EX) == 0;
  }
  ~FolderLock() { close(file_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  /// False on a file system without locks: two processes then do the same work, each under its own name.
  bool is_held() const { return is_held_; }

 private:
  int file_;
  bool is_held_ = false;
};

/// Of a summary and of every file that it sums up: damage that leaves the sizes as they were would train silently.
std::string hash_of_cache(const fs::path& folder, const DataSummary& summary, bool with_text) {
  ContentHash hash;
  hash.add(json(summary).dump());
  for (const std::string side : {"src", "tgt"}) {
    for (const char* kind : {".ids", ".offsets", ".text", ".text_offsets"}) {
      if (!with_text && std::string_view(kind).starts_with(".text")) continue;
      const MappedFile file(folder / (side + kind));
      hash.add({file.data(), file.size()});
    }
  }
  return hash.text();
}

void write_summary(const fs::path& folder, const DataSummary& summary, bool with_text) {
  json value = summary;
  value[kHash] = hash_of_cache(folder, summary, with_text);
  write_file_atomically(folder / "summary.json", value.dump(2) + "\n");
}

/// The summary of a cache that is there and is what was written.
std::optional<DataSummary> find_cache(const fs::path& folder, bool with_text) {
  if (!fs::exists(folder)) return {};
  try {
    const auto value = json::parse(read_file(folder / "summary.json"));
    const auto summary = value.get<DataSummary>();
    if (value.at(kHash) == hash_of_cache(folder, summary, with_text)) return summary;
  } catch (const json::exception&) {  // said below
  } catch (const DataError&) {
  }
  log_warning("{}: the token cache is damaged; it is made anew", folder.string());
  return {};
}

/// What processes that were killed left behind. Only under the lock.
void remove_unfinished(const fs::path& cache_folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(cache_folder))
    if (entry.path().filename().string().find(kUnfinished) != std::string::npos) fs::remove_all(entry.path());
}

/// A folder to make a cache in, of this process alone: on a disk that several machines share, others have the same number.
fs::path new_unfinished(const fs::path& folder) {
  std::random_device random;
  for (;;) {
    fs::path unfinished = fmt::format("{}{}{:08x}", folder.string(), kUnfinished, random());
    if (fs::create_directory(unfinished)) return unfinished;
  }
}

/// A text that changes between its hash and its last line would be kept under the hash of another.
void require_unchanged(const CorpusOptions& corpus, const std::string& fingerprint) {
  if (hash_of_files({corpus.src, corpus.tgt}) == fingerprint) return;
  throw DataError(corpus.src + " or " + corpus.tgt + ": it changed while it was read; start again when nothing writes to it");
}

/// Makes the cache in `wanted.folder`, of a corpus that has `wanted.fingerprint`.
DataSummary make_cache(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies, const CorpusCache& wanted,
                       bool with_text) {
  const fs::path& folder = wanted.folder;
  log_info("tokenising {} and {}", corpus.src, corpus.tgt);
  const fs::path unfinished = new_unfinished(folder);
  try {
    const DataSummary summary = write_cache_files(corpus, options, vocabularies, with_text, unfinished);
    write_summary(unfinished, summary, with_text);
    require_unchanged(corpus, wanted.fingerprint);
    if (const auto found = find_cache(folder, with_text)) {  // without locks, of a process that was faster, and may be reading it
      fs::remove_all(unfinished);
      return *found;
    }
    fs::rename(unfinished, folder);
    sync_directory(folder.parent_path());
    return summary;
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);
    throw;
  }
}

DataSummary find_or_make(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies,
                         const CorpusCache& wanted, bool with_text) {
  const fs::path& folder = wanted.folder;
  try {
    if (const auto found = find_cache(folder, with_text)) return *found;
    fs::create_directories(folder.parent_path());
    const FolderLock lock(folder.parent_path());
    if (const auto found = find_cache(folder, with_text)) return *found;  // made by the process that held the lock
    fs::remove_all(folder);                                               // a damaged one
    if (lock.is_held()) remove_unfinished(folder.parent_path());
    return make_cache(corpus, options, vocabularies, wanted, with_text);
  } catch (const fs::filesystem_error& error) {
    throw MachineError(folder.string() + ": the token cache cannot be made: " + error.code().message() +
                       "; data.cache may name another folder");
  }
}

std::string hash_of_inputs(const std::string& fingerprint, const DataOptions& options, const Vocabularies& vocabularies, bool with_text) {
  ContentHash hash;
  hash.add(fmt::format("{} {} {} {} {}", kFormat, fingerprint, options.max_length, static_cast<int>(options.long_lines), with_text));
  hash.add(vocabularies.src->serialized());
  hash.add(vocabularies.tgt->serialized());
  return hash.text();
}

}  // namespace

CorpusCache open_corpus_cache(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies,
                              const std::string& cache_folder, bool with_text) {
  require_corpus_file(corpus.src, "source text");
  require_corpus_file(corpus.tgt, "target text");
  CorpusCache cache;
  cache.fingerprint = hash_of_files({corpus.src, corpus.tgt});
  cache.folder = fs::absolute(cache_folder) / hash_of_inputs(cache.fingerprint, options, vocabularies, with_text);
  cache.summary = find_or_make(corpus, options, vocabularies, cache, with_text);
  if (cache.summary.kept == 0)
    throw DataError(corpus.src + " and " + corpus.tgt + ": no sentence pair is left to train on (" + cache.summary.text() + ")");
  return cache;
}

}  // namespace lacuna
