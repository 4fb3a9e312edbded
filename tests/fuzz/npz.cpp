// Archives of arrays, as Marian's models are.
#include "exchange/npz.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lacuna::fuzz(data, size, [](std::string_view input) {
    const lacuna::NpzArrays arrays = lacuna::read_npz(input, "input");
    size_t bytes = 0;
    for (const auto& [name, tensor] : arrays.tensors) bytes += tensor.nbytes();
    for (const auto& [name, text] : arrays.bytes) bytes += text.size();
    if (bytes > input.size()) __builtin_trap();
  });
}
