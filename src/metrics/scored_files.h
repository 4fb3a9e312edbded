#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"

namespace lacuna {

/// Translations and references that were checked before sacreBLEU runs: readable, UTF-8, and of equal line counts.
///
/// sacreBLEU reads plain files and gzip files that are named *.gz. Other input (stdin, a pipe, zstd, gzip under another name) is copied to
/// a temporary file; so are texts with a byte order mark, without it, and texts in pieces, with whole words (text/joiner.h).
class ScoredFiles {
 public:
  /// Throws DataError if a file is missing, unreadable, empty or not UTF-8, or if two differ in their number of lines.
  ScoredFiles(const std::vector<std::filesystem::path>& systems, const std::vector<std::filesystem::path>& references,
              std::string joiner = {});

  const std::vector<std::string>& systems() const { return systems_; }        ///< paths for sacreBLEU
  const std::vector<std::string>& references() const { return references_; }  ///< paths for sacreBLEU
  int64_t num_lines() const { return num_lines_; }

 private:
  std::string add(const std::filesystem::path& file);

  TemporaryFolder copies_;
  std::string joiner_;  // empty = text is scored as it is
  std::vector<std::string> systems_, references_;
  std::string first_file_;  // as messages name it
  int64_t num_lines_ = -1;
  int num_copies_ = 0;
};

/// Writes lines to a file. Throws DataError if one holds a line break, MachineError if the disk refuses.
void write_lines(const std::filesystem::path& file, const std::vector<std::string>& lines);

}  // namespace lacuna
