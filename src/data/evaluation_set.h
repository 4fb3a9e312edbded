#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "config/options.h"
#include "data/batch.h"

namespace lacuna {

/// A validation or test set in memory: its raw lines to translate and to score, and batches for its loss.
struct EvaluationSet {
  std::string name;
  std::vector<std::string> src_lines, tgt_lines;      ///< as CorpusReader returns them, empty lines included
  std::vector<std::shared_ptr<const Batch>> batches;  ///< pairs without an empty side, in the order of the files
  int64_t cropped = 0;                                ///< pairs cut to max_length in the batches
};

/// Reads a set. Pairs longer than data.max_length are cropped, whatever data.long says. Otherwise throws as TokenizedCorpus::open does.
EvaluationSet load_evaluation_set(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies,
                                  int64_t batch_tokens);

/// Warns if more than 1 % of a text's tokens are unknown.
void warn_of_unknown(const std::string& text, int64_t unknown, int64_t tokens);

/// Returns the corpus's name, or its source file's name without the language, .gz and .zst.
std::string name_of(const CorpusOptions& corpus);

/// A set to score as two files of lines, which is what the verbs read: the set's own files, or, if it is one file of columns or its source
/// has a prefix, copies in temporary files.
class SetFiles {
 public:
  /// Throws as CorpusReader does, and MachineError if copies cannot be written.
  explicit SetFiles(const CorpusOptions& set);
  const std::string& src() const { return src_; }
  const std::string& tgt() const { return tgt_; }

 private:
  std::optional<std::pair<UnnamedFile, UnnamedFile>> copies_;
  std::string src_, tgt_;
};

}  // namespace lacuna
