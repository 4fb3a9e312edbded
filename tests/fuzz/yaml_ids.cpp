// Vocabularies of Marian.
#include "exchange/yaml_ids.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lacuna::fuzz(data, size, [](std::string_view input) { lacuna::read_yaml_ids(std::string(input), "input"); });
}
