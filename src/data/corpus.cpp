#include "data/corpus.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/spelling.h"
#include "data/corpus_cache.h"

namespace lacuna {

DataSummary& DataSummary::operator+=(const DataSummary& other) {
  using S = DataSummary;
  for (const auto count : {&S::lines, &S::kept, &S::empty, &S::skipped, &S::uneven, &S::low_scores, &S::cropped, &S::carriage_returns,
                           &S::other_line_ends, &S::src_tokens, &S::tgt_tokens, &S::src_unk, &S::tgt_unk})
    this->*count += other.*count;
  bad += other.bad;
  for (size_t i = 0; i < tgt_lengths.size(); ++i) {
    src_lengths[i] += other.src_lengths[i];
    tgt_lengths[i] += other.tgt_lengths[i];
  }
  return *this;
}

std::string DataSummary::text() const {
  std::string text = fmt::format("{} of {}; {} source and {} target tokens; unknown {:.3f} % and {:.3f} %", counted(kept, "pair"),
                                 counted(lines, "line"), src_tokens, tgt_tokens, 100 * src_unk_rate(), 100 * tgt_unk_rate());
  if (empty > 0) text += fmt::format("; {} with an empty side skipped", empty);
  if (skipped > 0) text += fmt::format("; {} too long, skipped", skipped);
  if (uneven > 0) text += fmt::format("; {} of too different lengths, skipped", uneven);
  if (low_scores > 0) text += fmt::format("; {} with a low score, skipped", low_scores);
  if (cropped > 0) text += fmt::format("; {} too long, cropped", cropped);
  if (bad.count() > 0) text += fmt::format("; {} that cannot be taken, skipped", counted(bad.count(), "line"));
  if (carriage_returns > 0) text.append("; ").append(counted(carriage_returns, "line")).append(" ended in CR LF");
  if (other_line_ends > 0)
    text.append("; ").append(counted(other_line_ends, "line")).append(" with U+2028 or another line end of other programs: text here");
  return text;
}

void TokenizedCorpus::require_unchanged() const {
  for (const auto* side : {&src_, &tgt_}) {
    (*side)->ids.require_unchanged();
    if ((*side)->text) (*side)->text->require_unchanged();
  }
  if (links_) links_->require_unchanged();
}

std::shared_ptr<const TokenizedCorpus> TokenizedCorpus::open(const CorpusOptions& corpus, const DataOptions& options,
                                                             const Vocabularies& vocabularies, const std::string& cache_folder) {
  return of(open_corpus_cache(corpus, options, vocabularies, cache_folder, parts_of_cache(corpus, options)));
}

std::shared_ptr<const TokenizedCorpus> TokenizedCorpus::of(CorpusCache cache) {
  auto opened = std::make_shared<TokenizedCorpus>();
  opened->src_ = std::move(cache.src);
  opened->tgt_ = std::move(cache.tgt);
  opened->links_ = std::move(cache.links);
  opened->summary_ = cache.summary;
  opened->size_ = cache.summary.kept;
  opened->fingerprint_ = cache.fingerprint;
  if (cache.summary.bad.count() > 0) opened->rejects_ = cache.folder / kRejectsOfCache;
  return opened;
}

}  // namespace lacuna
