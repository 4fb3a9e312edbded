#include "data/evaluation_set.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "base/spelling.h"
#include "data/corpus_reader.h"
#include "text/invisible_characters.h"

namespace lacuna {
namespace {

std::vector<TokenId> ids_of(const Vocabulary& vocabulary, const std::string& line, int64_t max_length, bool& is_cropped) {
  std::vector<TokenId> ids = vocabulary.encode(line);
  if (static_cast<int64_t>(ids.size()) > max_length) {
    ids.resize(static_cast<size_t>(max_length));
    is_cropped = true;
  }
  if (!ids.empty()) ids.push_back(kEos);
  return ids;
}

}  // namespace

std::string name_of(const CorpusOptions& corpus) {
  if (!corpus.name.empty()) return corpus.name;
  std::filesystem::path file = std::filesystem::path(corpus.files().front().first).filename();
  if (file.extension() == ".gz" || file.extension() == ".zst") file = file.stem();
  return file.has_extension() ? file.stem().string() : file.string();
}

void warn_of_unknown(const std::string& text, int64_t unknown, int64_t tokens) {
  constexpr double kMany = 0.01;
  const double share = tokens > 0 ? static_cast<double>(unknown) / static_cast<double>(tokens) : 0;
  if (share > kMany)
    log_warning("{}: {:.1f} % of the tokens are unknown to the vocabulary; is it the right one for this text?", text, 100 * share);
}

EvaluationSet load_evaluation_set(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies,
                                  int64_t batch_tokens) {
  EvaluationSet set;
  set.name = name_of(corpus);
  CorpusReader reader(corpus);
  BatchBuilder builder;
  int64_t src_tokens = 0, src_unknown = 0;
  std::string src, tgt;
  while (reader.next(src, tgt)) {
    bool is_cropped = false;
    const auto src_ids = ids_of(*vocabularies.src, source_text(*vocabularies.src, src), options.max_length, is_cropped);
    const auto tgt_ids = ids_of(*vocabularies.tgt, tgt, options.max_length, is_cropped);
    src_tokens += std::ssize(src_ids);
    src_unknown += std::ranges::count(src_ids, kUnk);
    if (!src_ids.empty() && !tgt_ids.empty()) {
      set.cropped += is_cropped ? 1 : 0;
      if (!builder.fits(static_cast<int64_t>(src_ids.size()), static_cast<int64_t>(tgt_ids.size()), batch_tokens))
        set.batches.push_back(builder.take());
      builder.add(src_ids, tgt_ids, reader.line_number() - 1);
    }
    set.src_lines.push_back(src);
    set.tgt_lines.push_back(tgt);
  }
  if (!builder.is_empty()) set.batches.push_back(builder.take());
  if (set.batches.empty()) throw DataError(corpus.files_text() + ": every pair has an empty side; expected sentences");
  warn_of_unknown(corpus.src_text(), src_unknown, src_tokens);
  if (set.cropped > 0) log_warning("{}: {} longer than data.max_length, cut for the loss", set.name, counted(set.cropped, "pair"));
  return set;
}

SetFiles::SetFiles(const CorpusOptions& set) : src_(set.src), tgt_(set.tgt) {
  if (set.tsv.empty() && set.src_prefix.empty()) return;
  copies_.emplace();
  src_ = copies_->first.path().string();
  tgt_ = copies_->second.path().string();
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
