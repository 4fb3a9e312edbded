// A file of a token cache with a hash that fits. The first byte of an input says which file the others are.
#include <nlohmann/json.hpp>

#include "base/content_hash.h"
#include "base/files.h"
#include "base/log.h"
#include "data/corpus.h"
#include "fuzz.h"

namespace lacuna {
namespace {

constexpr const char* kFiles[] = {"src.ids", "src.offsets", "tgt.ids", "tgt.offsets", "summary.json"};

std::shared_ptr<const TokenizedCorpus> open_corpus() {
  static const VocabularyPtr words = token_list_from_bytes("a\nb\nc\n", "words");
  CorpusOptions corpus;
  corpus.src = write_input("src", "a b\nc\n");
  corpus.tgt = write_input("tgt", "b\nc a\n");
  DataOptions options;
  options.tokenizer = Tokenizer::kNone;
  return TokenizedCorpus::open(corpus, options, {words, words}, (fuzz_folder() / "cache").string());
}

/// Writes the hash into the summary that covers the files as they are.
void sign(const std::filesystem::path& cache) {
  nlohmann::json summary = nlohmann::json::parse(read_file(cache / "summary.json"), nullptr, false);
  if (!summary.is_object()) return;
  summary.erase("xxh3_128");
  ContentHash hash;
  hash.add(summary.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  for (int i = 0; i < 4; ++i) hash.add(read_file(cache / kFiles[i]));
  summary["xxh3_128"] = hash.text();
  std::ofstream(cache / "summary.json") << summary.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace
}  // namespace lacuna

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lacuna::fuzz(data, size, [](std::string_view input) {
    lacuna::set_log_level(lacuna::LogLevel::kOff);
    lacuna::open_corpus();
    if (input.empty()) return;
    for (const auto& entry : std::filesystem::directory_iterator(lacuna::fuzz_folder() / "cache")) {
      if (!entry.is_directory()) continue;
      std::ofstream(entry.path() / lacuna::kFiles[static_cast<uint8_t>(input[0]) % 5], std::ios::binary) << input.substr(1);
      lacuna::sign(entry.path());
    }
    const auto corpus = lacuna::open_corpus();
    for (int64_t i = 0; i < corpus->size(); ++i)
      for (const auto ids : {corpus->src(i), corpus->tgt(i)})
        for (const lacuna::TokenId id : ids)
          if (id < 0 || id > 5) __builtin_trap();
  });
}
