// A manifest, and the files it lists.
#include "checkpoint/manifest.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lacuna::fuzz(data, size, [](std::string_view input) {
    lacuna::write_input("config.yaml", "seed: 1\n");
    lacuna::write_input(lacuna::Manifest::kFileName, input);
    const lacuna::Manifest manifest = lacuna::Manifest::read(lacuna::fuzz_folder());
    for (const auto& [name, digest] : manifest.files) manifest.read_file(lacuna::fuzz_folder(), name, 100);
  });
}
