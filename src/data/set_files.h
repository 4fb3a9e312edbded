#pragma once

#include <optional>
#include <string>

#include "base/files.h"
#include "config/options.h"

namespace lacuna {

/// A set to score as two files of lines, which is what the verbs read: the set's own files, or, if it is one file of columns or its source
/// has a prefix, copies in a temporary folder.
class SetFiles {
 public:
  /// Throws as CorpusReader does, and MachineError if copies cannot be written.
  explicit SetFiles(const CorpusOptions& set);
  const std::string& src() const { return src_; }
  const std::string& tgt() const { return tgt_; }

 private:
  std::optional<TemporaryFolder> copies_;
  std::string src_, tgt_;
};

}  // namespace lacuna
