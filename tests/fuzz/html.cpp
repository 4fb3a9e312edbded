// HTML, with translations of all kinds. Tokens are all of its bytes.
#include "document/html_tokens.h"
#include "documents.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  size_t end = 0;
  const std::string_view html(reinterpret_cast<const char*>(data), size);
  for (const auto& token : lacuna::document::html_tokens(html)) {
    if (token.place.begin != end) __builtin_trap();
    end = token.place.end;
  }
  if (end != html.size()) __builtin_trap();
  return lacuna::fuzz_documents(data, size, lacuna::document::html_document, false);
}
