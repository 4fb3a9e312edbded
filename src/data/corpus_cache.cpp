#include "data/corpus_cache.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "data/content_hash.h"
#include "data/corpus_reader.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kFormat = 1;
constexpr size_t kChunk = 1 << 15;  // pairs tokenised at a time, by all threads together

json to_json(const DataSummary& summary) {
  return {{"lines", summary.lines},
          {"kept", summary.kept},
          {"empty", summary.empty},
          {"skipped", summary.skipped},
          {"cropped", summary.cropped},
          {"carriage_returns", summary.carriage_returns},
          {"src_tokens", summary.src_tokens},
          {"tgt_tokens", summary.tgt_tokens},
          {"src_unk", summary.src_unk},
          {"tgt_unk", summary.tgt_unk},
          {"tgt_lengths", summary.tgt_lengths}};
}

DataSummary summary_from(const json& value) {
  DataSummary summary;
  value.at("lines").get_to(summary.lines);
  value.at("kept").get_to(summary.kept);
  value.at("empty").get_to(summary.empty);
  value.at("skipped").get_to(summary.skipped);
  value.at("cropped").get_to(summary.cropped);
  value.at("carriage_returns").get_to(summary.carriage_returns);
  value.at("src_tokens").get_to(summary.src_tokens);
  value.at("tgt_tokens").get_to(summary.tgt_tokens);
  value.at("src_unk").get_to(summary.src_unk);
  value.at("tgt_unk").get_to(summary.tgt_unk);
  value.at("tgt_lengths").get_to(summary.tgt_lengths);
  return summary;
}

/// One side's files while they are made.
class SideWriter {
 public:
  SideWriter(const fs::path& folder, const std::string& name, bool with_text)
      : folder_(folder), ids_(open(name + ".ids")), offsets_(open(name + ".offsets")) {
    write(offsets_, &id_count_, sizeof id_count_);
    if (!with_text) return;
    text_ = open(name + ".text");
    text_offsets_ = open(name + ".text_offsets");
    write(text_offsets_, &byte_count_, sizeof byte_count_);
  }

  void add(const std::vector<TokenId>& ids, const std::string& line) {
    write(ids_, ids.data(), ids.size() * sizeof(TokenId));
    id_count_ += ids.size();
    write(offsets_, &id_count_, sizeof id_count_);
    if (!text_.is_open()) return;
    write(text_, line.data(), line.size());
    byte_count_ += line.size();
    write(text_offsets_, &byte_count_, sizeof byte_count_);
  }

  void close() {
    for (std::ofstream* stream : {&ids_, &offsets_, &text_, &text_offsets_}) {
      if (!stream->is_open()) continue;
      stream->close();
      check(*stream);
    }
  }

 private:
  std::ofstream open(const std::string& name) {
    std::ofstream stream(folder_ / name, std::ios::binary);
    check(stream);
    return stream;
  }
  void write(std::ofstream& stream, const void* data, size_t size) {
    stream.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
    check(stream);
  }
  void check(const std::ofstream& stream) const {
    if (!stream)
      throw MachineError(folder_.string() + ": the token cache cannot be written; is the disk full? data.cache may name another folder");
  }

  fs::path folder_;
  std::ofstream ids_, offsets_, text_, text_offsets_;
  uint64_t id_count_ = 0, byte_count_ = 0;
};

struct Pair {
  std::string src, tgt, place;
  std::vector<TokenId> src_ids, tgt_ids;
};

/// Reads, tokenises, filters and writes one corpus.
class CacheMaker {
 public:
  CacheMaker(const fs::path& folder, const DataOptions& options, const Vocabularies& vocabularies, bool with_text)
      : options_(options), vocabularies_(vocabularies), src_(folder, "src", with_text), tgt_(folder, "tgt", with_text) {}

  DataSummary make(const CorpusOptions& corpus) {
    CorpusReader reader(corpus);
    std::vector<Pair> chunk;
    for (bool more = true; more;) {
      chunk.clear();
      while (chunk.size() < kChunk && (more = read(reader, chunk))) {
      }
      tokenize(chunk);
      for (const Pair& pair : chunk) keep(pair);
    }
    summary_.lines = reader.line_number();
    summary_.carriage_returns = reader.carriage_returns();
    src_.close();
    tgt_.close();
    return summary_;
  }

 private:
  static bool read(CorpusReader& reader, std::vector<Pair>& chunk) {
    Pair pair;
    if (!reader.next(pair.src, pair.tgt)) return false;
    pair.place = reader.src_place();
    chunk.push_back(std::move(pair));
    return true;
  }

  void tokenize(std::vector<Pair>& chunk) const {
    const auto work = [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        chunk[i].src_ids = vocabularies_.src->encode(chunk[i].src);
        chunk[i].tgt_ids = vocabularies_.tgt->encode(chunk[i].tgt);
      }
    };
    const size_t threads = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 16), part = chunk.size() / threads + 1;
    std::vector<std::jthread> others;
    for (size_t t = 1; t < threads; ++t)
      others.emplace_back(work, std::min(t * part, chunk.size()), std::min((t + 1) * part, chunk.size()));
    work(0, std::min(part, chunk.size()));
  }

  void keep(Pair pair) {
    if (pair.src_ids.empty() || pair.tgt_ids.empty()) {
      ++summary_.empty;
      return;
    }
    const auto limit = static_cast<size_t>(options_.max_length);
    if (const size_t longest = std::max(pair.src_ids.size(), pair.tgt_ids.size()); longest > limit) {
      if (options_.long_lines == LongLines::kError)
        throw DataError(pair.place + ": the sentence pair has " + std::to_string(longest) + " tokens; data.max_length is " +
                        std::to_string(limit) + ": raise it, or set data.long to skip or crop");
      if (options_.long_lines == LongLines::kSkip) {
        ++summary_.skipped;
        return;
      }
      ++summary_.cropped;
      pair.src_ids.resize(std::min(pair.src_ids.size(), limit));
      pair.tgt_ids.resize(std::min(pair.tgt_ids.size(), limit));
    }
    summary_.src_unk += std::count(pair.src_ids.begin(), pair.src_ids.end(), kUnk);
    summary_.tgt_unk += std::count(pair.tgt_ids.begin(), pair.tgt_ids.end(), kUnk);
    pair.src_ids.push_back(kEos);
    pair.tgt_ids.push_back(kEos);
    src_.add(pair.src_ids, pair.src);
    tgt_.add(pair.tgt_ids, pair.tgt);
    ++summary_.kept;
    summary_.src_tokens += static_cast<int64_t>(pair.src_ids.size());
    summary_.tgt_tokens += static_cast<int64_t>(pair.tgt_ids.size());
    ++summary_.tgt_lengths[std::min(pair.tgt_ids.size() / 16, summary_.tgt_lengths.size() - 1)];
  }

  const DataOptions& options_;
  const Vocabularies& vocabularies_;
  SideWriter src_, tgt_;
  DataSummary summary_;
};

std::string hash_of_inputs(const std::string& fingerprint, const DataOptions& options, const Vocabularies& vocabularies, bool with_text) {
  ContentHash hash;
  hash.add(fmt::format("{} {} {} {} {}", kFormat, fingerprint, options.max_length, static_cast<int>(options.long_lines), with_text));
  hash.add(vocabularies.src->serialized());
  hash.add(vocabularies.tgt->serialized());
  return hash.text();
}

DataSummary make_cache(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies, const fs::path& folder,
                       bool with_text) {
  const fs::path temporary = folder.string() + ".tmp" + std::to_string(getpid());
  std::error_code ignored;
  fs::remove_all(temporary, ignored);
  std::error_code error;
  if (!fs::create_directories(temporary, error)) throw MachineError(temporary.string() + ": the folder cannot be made: " + error.message());
  try {
    const DataSummary summary = CacheMaker(temporary, options, vocabularies, with_text).make(corpus);
    write_file_atomically(temporary / "summary.json", to_json(summary).dump(2) + "\n");
    fs::rename(temporary, folder, error);
    if (error && !fs::exists(folder / "summary.json")) throw MachineError(folder.string() + ": cannot be written: " + error.message());
    fs::remove_all(temporary, ignored);
    return summary;
  } catch (...) {
    fs::remove_all(temporary, ignored);
    throw;
  }
}

}  // namespace

CorpusCache open_corpus_cache(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies,
                              const std::string& cache_folder, bool with_text) {
  require_readable_file(corpus.src, "source text");
  require_readable_file(corpus.tgt, "target text");
  CorpusCache cache;
  cache.fingerprint = hash_of_files({corpus.src, corpus.tgt});
  cache.folder = fs::path(cache_folder) / hash_of_inputs(cache.fingerprint, options, vocabularies, with_text);
  if (fs::exists(cache.folder / "summary.json")) {
    try {
      cache.summary = summary_from(json::parse(read_file(cache.folder / "summary.json")));
    } catch (const json::exception& error) {
      throw DataError(cache.folder.string() + ": damaged cache (" + error.what() + "); remove the folder and start again");
    }
  } else {
    log_info("tokenising {} and {}", corpus.src, corpus.tgt);
    cache.summary = make_cache(corpus, options, vocabularies, cache.folder, with_text);
  }
  if (cache.summary.kept == 0)
    throw DataError(corpus.src + " and " + corpus.tgt + ": no sentence pair is left to train on (" + cache.summary.text() + ")");
  return cache;
}

}  // namespace lacuna
