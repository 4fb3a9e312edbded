#include "data/corpus.h"

#include <spdlog/fmt/fmt.h>

#include <filesystem>

#include "base/spelling.h"
#include "data/corpus_cache.h"

namespace lacuna {

namespace fs = std::filesystem;

DataSummary& DataSummary::operator+=(const DataSummary& other) {
  using S = DataSummary;
  for (const auto count : {&S::lines, &S::kept, &S::empty, &S::skipped, &S::uneven, &S::cropped, &S::carriage_returns, &S::other_line_ends,
                           &S::src_tokens, &S::tgt_tokens, &S::src_unk, &S::tgt_unk})
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
  if (cropped > 0) text += fmt::format("; {} too long, cropped", cropped);
  if (bad.count() > 0) text += fmt::format("; {} that cannot be taken, skipped", counted(bad.count(), "line"));
  if (carriage_returns > 0) text.append("; ").append(counted(carriage_returns, "line")).append(" ended in CR LF");
  if (other_line_ends > 0)
    text.append("; ").append(counted(other_line_ends, "line")).append(" with U+2028 or another line end of other programs: text here");
  return text;
}

TokenizedCorpus::Side TokenizedCorpus::open_side(const fs::path& folder, const std::string& name, bool with_text) {
  Side side;
  side.ids = std::make_unique<MappedFile>(folder / (name + ".ids"));
  side.offsets = std::make_unique<MappedFile>(folder / (name + ".offsets"));
  if (with_text) {
    side.text = std::make_unique<MappedFile>(folder / (name + ".text"));
    side.text_offsets = std::make_unique<MappedFile>(folder / (name + ".text_offsets"));
  }
  return side;
}

std::shared_ptr<const TokenizedCorpus> TokenizedCorpus::open(const CorpusOptions& corpus, const DataOptions& options,
                                                             const Vocabularies& vocabularies, const std::string& cache_folder) {
  const bool with_text = options.spm_alpha > 0;
  const CorpusCache cache = open_corpus_cache(corpus, options, vocabularies, cache_folder, with_text);
  auto opened = std::make_shared<TokenizedCorpus>();
  opened->src_ = open_side(cache.folder, "src", with_text);
  opened->tgt_ = open_side(cache.folder, "tgt", with_text);
  opened->summary_ = cache.summary;
  opened->size_ = cache.summary.kept;
  opened->fingerprint_ = cache.fingerprint;
  if (cache.summary.bad.count() > 0) opened->rejects_ = cache.folder / kRejectsOfCache;
  return opened;
}

}  // namespace lacuna
