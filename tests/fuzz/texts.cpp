// Texts of several sentences, as `translate --split` takes them: all that is between sentences comes back.
#include "documents.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lacuna::fuzz_documents(
      data, size, [](std::string_view text, const auto& how) { return lacuna::document::plain_document(text, &how); }, true);
}
