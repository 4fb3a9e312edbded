// A shortlist of a vocabulary of three words. The seed has its hash.
#include "text/shortlist.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lacuna::fuzz(data, size, [](std::string_view input) {
    static const lacuna::VocabularyPtr words = lacuna::token_list_from_bytes("a\nb\nc\n", "words");
    const auto shortlist = lacuna::read_shortlist(lacuna::write_input("shortlist", input), {words, words});
    const std::vector<lacuna::TokenId> src = {3, 4, 5, 2};
    for (const lacuna::TokenId id : shortlist->candidates(src, {}))
      if (id < 0 || id >= words->size()) __builtin_trap();
  });
}
