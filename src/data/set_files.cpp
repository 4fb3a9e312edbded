#include "data/set_files.h"

#include "data/corpus_reader.h"

namespace lacuna {

SetFiles::SetFiles(const CorpusOptions& set) : src_(set.src), tgt_(set.tgt) {
  if (set.tsv.empty() && set.src_prefix.empty()) return;
  copies_.emplace();
  src_ = (copies_->path() / "src").string();
  tgt_ = (copies_->path() / "tgt").string();
  FileWriter src_copy(src_), tgt_copy(tgt_);
  std::string src, tgt;
  for (CorpusReader reader(set); reader.next(src, tgt);) {
    src_copy.write(src + "\n");
    tgt_copy.write(tgt + "\n");
  }
  src_copy.finish();
  tgt_copy.finish();
}

}  // namespace lacuna
