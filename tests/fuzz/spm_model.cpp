// A SentencePiece model, and what it makes of some lines.
#include "fuzz.h"
#include "text/vocabulary.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lacuna::fuzz(data, size, [](std::string_view input) {
    const lacuna::VocabularyPtr vocabulary = lacuna::sentencepiece_from_bytes(std::string(input), "input");
    std::string lines[] = {"a b", "ab cab \xEF\xAC\x81", "\xE2\x96\x81~~~\xCC\x86", ""};
    while (lines[3].size() < 5000) lines[3] += lines[lines[3].size() % 3];
    for (const std::string& line : lines) {
      const std::vector<lacuna::TokenId> ids = vocabulary->encode(line);
      for (const lacuna::TokenId id : ids)
        if (id < 0 || id >= vocabulary->size()) __builtin_trap();
      vocabulary->decode(ids);
      if (vocabulary->words_of(line, ids).size() != ids.size()) __builtin_trap();
      if (line.size() < 100) vocabulary->sample(line, 0.3, 4, 7);
    }
  });
}
