#include "data/corpus_cache.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "base/error.h"
#include "base/log.h"
#include "data/cache_maker.h"
#include "data/content_hash.h"

namespace lacuna {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DataSummary, lines, kept, empty, skipped, cropped, carriage_returns, other_line_ends, src_tokens,
                                   tgt_tokens, src_unk, tgt_unk, src_lengths, tgt_lengths)

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kFormat = 2;
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

/// Whether a file of offsets is one of `count` items, which lie in a file of numbers of `number_bytes` each: then none lies beside it.
bool is_whole(const fs::path& items, const fs::path& offsets, int64_t count, size_t number_bytes) {
  std::error_code error;
  const MappedFile mapped(offsets);
  const size_t numbers = mapped.size() / sizeof(uint64_t);
  if (mapped.size() % sizeof(uint64_t) != 0 || count < 0 || numbers != static_cast<uint64_t>(count) + 1) return false;
  const auto* const begins = reinterpret_cast<const uint64_t*>(mapped.data());
  const uintmax_t bytes = fs::file_size(items, error);
  return !error && bytes % number_bytes == 0 && begins[0] == 0 && begins[count] == bytes / number_bytes &&
         std::is_sorted(begins, begins + numbers);
}

bool is_whole(const fs::path& folder, int64_t kept, bool with_text) {
  for (const std::string side : {"src", "tgt"}) {
    if (!is_whole(folder / (side + ".ids"), folder / (side + ".offsets"), kept, sizeof(TokenId))) return false;
    if (with_text && !is_whole(folder / (side + ".text"), folder / (side + ".text_offsets"), kept, 1)) return false;
  }
  return true;
}

/// The summary of a cache that is there and whole.
std::optional<DataSummary> find_cache(const fs::path& folder, bool with_text) {
  if (!fs::exists(folder)) return {};
  try {
    const auto summary = json::parse(read_file(folder / "summary.json")).get<DataSummary>();
    if (is_whole(folder, summary.kept, with_text)) return summary;
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

DataSummary make_cache(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies, const fs::path& folder,
                       bool with_text) {
  log_info("tokenising {} and {}", corpus.src, corpus.tgt);
  const fs::path unfinished = new_unfinished(folder);
  try {
    const DataSummary summary = write_cache_files(corpus, options, vocabularies, with_text, unfinished);
    write_file_atomically(unfinished / "summary.json", json(summary).dump(2) + "\n");
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

DataSummary find_or_make(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies, const fs::path& folder,
                         bool with_text) {
  try {
    if (const auto found = find_cache(folder, with_text)) return *found;
    fs::create_directories(folder.parent_path());
    const FolderLock lock(folder.parent_path());
    if (const auto found = find_cache(folder, with_text)) return *found;  // made by the process that held the lock
    fs::remove_all(folder);                                               // a damaged one
    if (lock.is_held()) remove_unfinished(folder.parent_path());
    return make_cache(corpus, options, vocabularies, folder, with_text);
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
  cache.summary = find_or_make(corpus, options, vocabularies, cache.folder, with_text);
  if (cache.summary.kept == 0)
    throw DataError(corpus.src + " and " + corpus.tgt + ": no sentence pair is left to train on (" + cache.summary.text() + ")");
  return cache;
}

}  // namespace lacuna
