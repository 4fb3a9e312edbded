// SRT and WebVTT, with translations of all kinds.
#include "documents.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lacuna::fuzz_documents(data, size, lacuna::document::subtitle_document, false);
}
