#pragma once

#include <optional>
#include <string>

#include "base/files.h"
#include "config/options.h"

namespace lacuna {

/// A set to score as two files of lines, which is what the verbs read: its own, or copies in a temporary folder of one that is a single
/// file, or whose source has a prefix.
class SetFiles {
 public:
  /// Throws what CorpusReader throws, and MachineError if copies cannot be written.
  explicit SetFiles(const CorpusOptions& set);
  const std::string& src() const { return src_; }
  const std::string& tgt() const { return tgt_; }

 private:
  std::optional<TemporaryFolder> copies_;
  std::string src_, tgt_;
};

}  // namespace lacuna
