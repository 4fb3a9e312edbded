#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/line_reader.h"
#include "base/process.h"
#include "metrics/sacrebleu.h"

namespace lacuna {

/// Translations and references, checked before sacreBLEU runs: readable, UTF-8, of equal line counts. What it cannot
/// read (stdin, a pipe, zstd, gzip under another name), a text with a byte order mark or in pieces is copied to a
/// temporary file; all are where lines are left out.
class ScoredFiles {
 public:
  /// Throws DataError if a file is missing, unreadable or empty, if two differ in their number of lines, or if all lines are bad; and
  /// LineError for a bad line, unless such are to be skipped: then it is warned of, and left out of all files.
  ScoredFiles(const std::vector<std::filesystem::path>& systems, const std::vector<std::filesystem::path>& references,
              std::string joiner = {}, OnBadLine bad_lines = OnBadLine::kStop);

  const std::vector<std::string>& systems() const { return systems_; }        ///< paths for sacreBLEU
  const std::vector<std::string>& references() const { return references_; }  ///< paths for sacreBLEU
  int64_t num_lines() const { return num_lines_ - bad_lines(); }              ///< that are scored
  int64_t bad_lines() const { return static_cast<int64_t>(bad_lines_.size()); }

 private:
  std::string add(const std::filesystem::path& file);
  bool next_line(LineReader& reader, std::string& line);
  void leave_out_bad_lines(std::vector<std::string>& files);

  std::list<UnnamedFile> copies_;
  std::string joiner_;  // empty = text is scored as it is
  OnBadLine on_bad_line_;
  std::set<int64_t> bad_lines_;  // numbers of those that are bad in one of the files
  std::vector<std::string> systems_, references_;
  std::string first_file_;  // as messages name it
  int64_t num_lines_ = -1;  // of each file
};

/// Writes lines to a file. Throws DataError if one holds a line break, MachineError if the disk refuses.
void write_lines(const std::filesystem::path& file, const std::vector<std::string>& lines);

/// Runs sacreBLEU with the options of every metric and `extra`, and returns what it wrote. Throws UsageError if it
/// refuses its arguments, MachineError if it fails; both with its last errors, or with what to install.
ProcessResult run_sacrebleu(const Scorer& scorer, const ScoredFiles& files, const ScoreOptions& options,
                            const std::vector<std::string>& extra);

/// Throws MachineError that says that `answer` is not what sacreBLEU 2 writes.
[[noreturn]] void refuse_answer(const Scorer& scorer, const std::string& answer);

}  // namespace lacuna
