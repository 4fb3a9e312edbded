#pragma once

#include <zlib.h>

#include <string>

#include "scratch_folder.h"

namespace lacuna {

inline std::string write_gzip(const ScratchFolder& folder, const std::string& name, const std::string& text) {
  const gzFile file = gzopen((folder / name).c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return folder / name;
}

}  // namespace lacuna
