// Text, plain, gzip or zstd, by lines, and as two columns of a corpus.
#include "base/line_reader.h"
#include "data/corpus_reader.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read = [&](const auto& use) { return lacuna::fuzz(data, size, use); };
  read([](std::string_view input) {
    lacuna::LineReader reader(lacuna::write_input("lines", input));
    for (std::string line; reader.next(line);) reader.require_clean(line);
  });
  return read([](std::string_view input) {
    lacuna::CorpusOptions corpus;
    corpus.tsv = lacuna::write_input("lines", input);
    lacuna::CorpusReader reader(corpus);
    for (std::string src, tgt; reader.next(src, tgt);) continue;
  });
}
