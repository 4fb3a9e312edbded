#include "data/batch_maker.h"

#include <algorithm>
#include <cmath>

namespace lacuna {
namespace {

uint64_t draws_of(const BatchPlan& plan, size_t corpus) {
  return std::max<uint64_t>(1,
                            static_cast<uint64_t>(std::llround(plan.weights[corpus] * static_cast<double>(plan.corpora[corpus]->size()))));
}

uint64_t draws_of(const BatchPlan& plan) {
  uint64_t total = 0;
  for (size_t c = 0; c < plan.corpora.size(); ++c) total += draws_of(plan, c);
  return total;
}

uint64_t epoch_key(const BatchPlan& plan, int64_t epoch, uint64_t site) {
  return random_key(plan.seed, RandomUse::kShuffle, static_cast<uint64_t>(epoch), site);
}

}  // namespace

EpochSize epoch_size(const BatchPlan& plan) {
  EpochSize size;
  for (size_t c = 0; c < plan.corpora.size(); ++c) {
    const TokenizedCorpus& corpus = *plan.corpora[c];
    const uint64_t draws = draws_of(plan, c);
    const double times = static_cast<double>(draws) / static_cast<double>(corpus.size());
    size.pairs += static_cast<int64_t>(draws);
    size.src_tokens += static_cast<int64_t>(std::llround(times * static_cast<double>(corpus.summary().src_tokens)));
    size.tgt_tokens += static_cast<int64_t>(std::llround(times * static_cast<double>(corpus.summary().tgt_tokens)));
  }
  return size;
}

double batches_of_epoch(const BatchPlan& plan) {
  constexpr int64_t kPairsToCount = 100000;
  if (plan.stream) return 0;
  Epoch epoch(plan, 0);
  double batches = 0;
  for (; !epoch.is_over() && epoch.pairs_done() < kPairsToCount; ++batches) epoch.skip(1);
  return batches * static_cast<double>(epoch_size(plan).pairs) / static_cast<double>(epoch.pairs_done());
}

Epoch::Epoch(const BatchPlan& plan, int64_t epoch)
    : plan_(plan), epoch_(epoch), draws_(draws_of(plan)), order_(draws_of(plan), epoch_key(plan, epoch, 0)) {
  uint64_t end = 0;
  for (size_t c = 0; c < plan.corpora.size(); ++c) ends_.push_back(end += draws_of(plan, c));
}

/// The draws from a corpus of n sentences: every sentence once per n draws; the remaining draws are a random selection.
Epoch::Draw Epoch::draw(uint64_t position) const {
  const uint64_t drawn = order_.at(position);
  const auto c = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), drawn) - ends_.begin());
  const TokenizedCorpus& corpus = *plan_.corpora[c];
  const uint64_t within = drawn - (c == 0 ? 0 : ends_[c - 1]), size = static_cast<uint64_t>(corpus.size());
  const uint64_t whole = draws_of(plan_, c) / size * size;
  const uint64_t sentence = within < whole ? within % size : Permutation(size, epoch_key(plan_, epoch_, c + 1)).at(within - whole);
  return {&corpus, static_cast<int64_t>(sentence), drawn};
}

std::vector<Epoch::Draw> Epoch::next_draws() {
  std::vector<Draw> draws;
  int64_t src_tokens = 0, tgt_tokens = 0;
  for (; position_ < draws_; ++position_) {
    const Draw one = draw(position_);
    src_tokens += one.corpus->src_length(one.sentence);
    tgt_tokens += one.corpus->tgt_length(one.sentence);
    if (!draws.empty() && std::max(src_tokens, tgt_tokens) > plan_.batch_tokens) break;
    draws.push_back(one);
  }
  return draws;
}

std::vector<TokenId> Epoch::ids(const Draw& draw, bool is_src) const {
  const auto fixed = is_src ? draw.corpus->src(draw.sentence) : draw.corpus->tgt(draw.sentence);
  const bool may_be_cropped = std::ssize(fixed) > plan_.max_length;  // with eos: its text may be of any length
  if (plan_.spm_alpha > 0 && !may_be_cropped) {
    std::vector<TokenId> sampled = sample(draw, is_src);
    if (!sampled.empty() && static_cast<int64_t>(sampled.size()) <= plan_.max_length) {
      sampled.push_back(kEos);
      return sampled;
    }
  }
  return {fixed.begin(), fixed.end()};
}

std::vector<TokenId> Epoch::sample(const Draw& draw, bool is_src) const {
  const Vocabulary& vocabulary = is_src ? *plan_.vocabularies.src : *plan_.vocabularies.tgt;
  const std::string_view text = is_src ? draw.corpus->src_text(draw.sentence) : draw.corpus->tgt_text(draw.sentence);
  const uint64_t key = mix(random_key(plan_.seed, RandomUse::kSubword, static_cast<uint64_t>(epoch_), is_src ? 0 : 1), draw.number);
  return vocabulary.sample(text, plan_.spm_alpha, plan_.spm_nbest, key);
}

/// Returns the links between the tokens of a pair; none to or from eos.
WordLinks Epoch::links(const Draw& draw, std::span<const TokenId> src, std::span<const TokenId> tgt) const {
  if (!draw.corpus->has_links()) return {};
  const std::span<const WordLink> links = draw.corpus->links(draw.sentence);
  if (links.empty()) return {};
  const std::vector<int32_t> src_words = plan_.vocabularies.src->words_of(draw.corpus->src_text(draw.sentence), src.first(src.size() - 1));
  const std::vector<int32_t> tgt_words = plan_.vocabularies.tgt->words_of(draw.corpus->tgt_text(draw.sentence), tgt.first(tgt.size() - 1));
  return links_of_tokens(links, src_words, tgt_words);
}

std::shared_ptr<const Batch> Epoch::next() {
  if (is_over()) return nullptr;
  BatchBuilder builder;
  for (const Draw& one : next_draws()) {
    const std::vector<TokenId> src = ids(one, true), tgt = ids(one, false);
    builder.add(src, tgt, static_cast<int64_t>(one.number), links(one, src, tgt));
  }
  for (const auto& corpus : plan_.corpora) corpus->require_unchanged();  // what was just copied is what was opened
  return builder.take();
}

}  // namespace lacuna
