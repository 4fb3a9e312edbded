// Forms that clients of the service send.
#include "serve/form.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lacuna::fuzz(data, size, [](std::string_view input) {
    for (const auto& [name, value] : lacuna::serve::parse_form(input)) lacuna::serve::require_text(name + value, "a field");
  });
}
