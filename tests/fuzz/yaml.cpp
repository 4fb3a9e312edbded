// A configuration, as a checkpoint has one; what is accepted is written and read again.
#include "config/load.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lacuna::fuzz(data, size, [](std::string_view input) {
    const lacuna::Options options = lacuna::options_from_yaml(std::string(input), "input");
    const std::string text = to_yaml(options);
    if (to_yaml(lacuna::options_from_yaml(text, "again")) != text) __builtin_trap();
  });
}
