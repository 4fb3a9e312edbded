// Weights: every tensor lies in memory of its own.
#include "checkpoint/safetensors.h"

#include <ATen/ATen.h>

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lacuna::fuzz(data, size, [](std::string_view input) {
    const lacuna::FileReader file(lacuna::write_input("weights", input));
    for (const auto& [name, tensor] : lacuna::read_safetensors(file))
      if (tensor.numel() > 0) tensor.to(at::kDouble).sum();
  });
}
