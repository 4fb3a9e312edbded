#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.h"

/// What the fuzz targets share. Each defines LLVMFuzzerTestOneInput (https://llvm.org/docs/LibFuzzer.html): whatever the bytes are, the
/// code under test returns or throws an Error.
namespace lacuna {

/// A folder in memory of this process alone, where inputs become files.
inline const std::filesystem::path& fuzz_folder() {
  static const std::filesystem::path folder = [] {
    const std::filesystem::path made = "/dev/shm/lacuna_fuzz_" + std::to_string(getpid());
    std::filesystem::create_directories(made);
    return made;
  }();
  return folder;
}

inline std::string write_input(const std::string& name, std::string_view bytes) {
  const std::filesystem::path file = fuzz_folder() / name;
  std::ofstream(file, std::ios::binary) << bytes;
  return file.string();
}

/// Calls `use` with the input; Errors are what is expected of it.
template <class Use>
int fuzz(const uint8_t* data, size_t size, const Use& use) {
  try {
    use(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const Error&) {
  }
  return 0;
}

}  // namespace lacuna
