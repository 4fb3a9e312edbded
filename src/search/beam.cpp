#include "search/beam.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <numeric>

#include "search/length_penalty.h"

namespace lacuna {
namespace {

constexpr TokenId kNotForced = -1;

bool is_better(const Candidate& a, const Candidate& b) {
  if (a.log_prob != b.log_prob) return a.log_prob > b.log_prob;
  if (a.token != b.token) return a.token < b.token;
  return a.row < b.row;
}

bool contains(const std::vector<TokenId>& tokens, TokenId token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

void sort_and_cut(std::vector<Candidate>& candidates, size_t count) {
  const size_t kept = std::min(count, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(kept), candidates.end(), is_better);
  candidates.resize(kept);
}

}  // namespace

template <class F>
void Beams::for_sentences(F f) const {
  constexpr int64_t kSentencesPerTask = 16;
  at::parallel_for(0, static_cast<int64_t>(sentences_.size()), kSentencesPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) f(static_cast<size_t>(s));
  });
}

void Beams::add(const std::vector<size_t>& places) {
  for (const size_t place : places) {
    const SearchInput& input = queue_.input(place);
    const int64_t limit = length_limit(settings_.options, static_cast<int64_t>(input.src.size()), max_positions_);
    sentence_of_row_.push_back(static_cast<int32_t>(sentences_.size()));
    sentences_.push_back({.place = place, .input = &input, .finished = {}, .limit = limit});
    live_.emplace_back();
  }
}

int64_t Beams::src_tokens() const {
  return std::accumulate(sentences_.begin(), sentences_.end(), int64_t{0},
                         [](int64_t sum, const Sentence& sentence) { return sum + static_cast<int64_t>(sentence.input->src.size()); });
}

std::vector<TokenId> Beams::last_tokens() const {
  std::vector<TokenId> tokens;
  for (const Hypothesis& hypothesis : live_) tokens.push_back(hypothesis.last_token());
  return tokens;
}

/// The only token that may follow a hypothesis: the next of the prefix, or eos at the length limit.
TokenId Beams::forced_token(int32_t row) const {
  const Sentence& sentence = sentences_[static_cast<size_t>(sentence_of_row_[static_cast<size_t>(row)])];
  const auto length = static_cast<size_t>(live_[static_cast<size_t>(row)].length());
  if (static_cast<int64_t>(length) + 1 >= sentence.limit) return kEos;
  return length < sentence.input->prefix.size() ? sentence.input->prefix[length] : kNotForced;
}

/// Allowed tokens of one row with the repetition penalty (Keskar et al. 2019, arXiv:1909.05858, section 4.1, on log-probabilities): tokens
/// that are there already cost `repetition_penalty` as much. Where nothing is allowed, or nothing has a probability, eos is forced.
std::vector<Candidate> Beams::best_of_row(int32_t row, const BestTokens& best) const {
  const Hypothesis& hypothesis = live_[static_cast<size_t>(row)];
  const std::vector<TokenId> blocked = settings_.constraints.blocked_after(hypothesis);
  const bool is_penalised = settings_.options.repetition_penalty != 1;
  std::vector<Candidate> candidates;
  float eos_log_prob = kImpossible;
  for (int64_t i = row * best.k; i < (row + 1) * best.k; ++i) {
    const TokenId token = best.tokens[static_cast<size_t>(i)];
    const float log_prob = best.log_probs[static_cast<size_t>(i)];
    require_number(log_prob, token);
    if (token == kEos) eos_log_prob = log_prob;
    if (log_prob == kImpossible || contains(blocked, token)) continue;
    const double penalty = is_penalised && contains(hypothesis.tokens, token) ? settings_.options.repetition_penalty : 1;
    candidates.push_back({row, token, log_prob, hypothesis.log_prob + penalty * log_prob, false});
  }
  if (candidates.empty()) candidates.push_back({row, kEos, eos_log_prob, hypothesis.log_prob + eos_log_prob, true});
  return candidates;
}

/// So many tokens of each row that the `wanted` best that are allowed are among them: blocked ones may stand before them, and repeated ones
/// may fall behind them.
int64_t Beams::tokens_to_ask(int64_t wanted, int64_t vocab_size) const {
  const double penalty = settings_.options.repetition_penalty;
  if (penalty < 1) return vocab_size;  // repeated tokens may rise from anywhere
  int64_t longest = 0;
  for (const Hypothesis& hypothesis : live_) longest = std::max(longest, hypothesis.length());
  return std::min(vocab_size, wanted + settings_.constraints.max_blocked(longest) + (penalty > 1 ? longest : 0));
}

/// The only way to go on from a row.
Candidate Beams::forced_candidate(int32_t row, TokenId token, float log_prob) const {
  require_number(log_prob, token);
  return {row, token, log_prob, live_[static_cast<size_t>(row)].log_prob + log_prob, token == kEos};
}

std::vector<int32_t> Beams::first_rows() const {
  std::vector<int32_t> first(sentences_.size() + 1, 0);
  for (const int32_t s : sentence_of_row_) ++first[static_cast<size_t>(s) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  return first;
}

std::vector<std::vector<Candidate>> Beams::candidates(const Logits& logits) const {
  const int64_t wanted = 2 * settings_.options.beam_size;  // half of them may end in eos
  std::vector<TokenId> asked;
  for (size_t row = 0; row < live_.size(); ++row) asked.push_back(forced_token(static_cast<int32_t>(row)));
  const std::vector<TokenId> forced = asked;
  std::replace(asked.begin(), asked.end(), kNotForced, kEos);
  const BestTokens best = logits.best(tokens_to_ask(wanted, logits.vocab_size()), asked);
  const std::vector<int32_t> first = first_rows();
  std::vector<std::vector<Candidate>> all(sentences_.size());
  for_sentences([&](size_t s) {
    for (int32_t row = first[s]; row < first[s + 1]; ++row) {
      const auto at = static_cast<size_t>(row);
      if (forced[at] != kNotForced) {
        all[s].push_back(forced_candidate(row, forced[at], best.asked[at]));
      } else {
        const std::vector<Candidate> found = best_of_row(row, best);
        all[s].insert(all[s].end(), found.begin(), found.end());
      }
    }
    sort_and_cut(all[s], static_cast<size_t>(wanted));
  });
  return all;
}

Hypothesis Beams::continued(const Candidate& candidate, const std::vector<AlignmentRow>& alignment) const {
  Hypothesis next = live_[static_cast<size_t>(candidate.row)];
  next.tokens.push_back(candidate.token);
  next.token_log_probs.push_back(candidate.token_log_prob);
  next.log_prob = candidate.log_prob;
  next.is_truncated = candidate.is_forced;
  if (!alignment.empty()) next.alignment.push_back(alignment[static_cast<size_t>(candidate.row)]);
  if (next.is_finished()) next.score = next.log_prob / length_penalty(settings_.options, next.length());
  return next;
}

bool Beams::is_done(const Sentence& sentence, const std::vector<Hypothesis>& live) const {
  if (live.empty()) return true;
  const auto n_best = static_cast<size_t>(settings_.options.n_best);
  if (sentence.finished.size() < n_best) return false;
  std::vector<double> scores;
  for (const Hypothesis& hypothesis : sentence.finished) scores.push_back(hypothesis.score);
  std::nth_element(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(n_best - 1), scores.end(), std::greater<>());
  const bool is_full = static_cast<int64_t>(sentence.finished.size()) >= settings_.options.beam_size;
  const int64_t length = is_full ? live.front().length() : sentence.limit;
  return live.front().log_prob / length_penalty(settings_.options, length) <= scores[n_best - 1];
}

Beams::Beam Beams::extended(Sentence& sentence, const std::vector<Candidate>& candidates, const std::vector<AlignmentRow>& alignment) {
  Beam beam;
  for (const Candidate& candidate : candidates) {
    if (static_cast<int64_t>(beam.live.size()) >= settings_.options.beam_size) break;
    Hypothesis next = continued(candidate, alignment);
    if (next.is_finished()) {
      sentence.finished.push_back(std::move(next));
    } else {
      beam.live.push_back(std::move(next));
      beam.parents.push_back(candidate.row);
    }
  }
  return is_done(sentence, beam.live) ? Beam() : beam;
}

std::vector<int32_t> Beams::extend(const std::vector<std::vector<Candidate>>& candidates,
                                   const std::vector<std::vector<float>>& alignment) {
  std::vector<AlignmentRow> rows;
  rows.reserve(alignment.size());
  for (const auto& weights : alignment) rows.push_back(std::make_shared<const std::vector<float>>(weights));
  std::vector<Beam> beams(sentences_.size());
  for_sentences([&](size_t s) { beams[s] = extended(sentences_[s], candidates[s], rows); });
  std::vector<int32_t> parents;
  std::vector<Sentence> under_way;
  live_.clear();
  sentence_of_row_.clear();
  for (size_t s = 0; s < beams.size(); ++s) {
    if (beams[s].live.empty()) {
      const size_t place = sentences_[s].place;
      queue_.finish(place, best_finished(std::move(sentences_[s])));
      continue;
    }
    std::move(beams[s].live.begin(), beams[s].live.end(), std::back_inserter(live_));
    parents.insert(parents.end(), beams[s].parents.begin(), beams[s].parents.end());
    sentence_of_row_.resize(live_.size(), static_cast<int32_t>(under_way.size()));
    under_way.push_back(std::move(sentences_[s]));
  }
  sentences_ = std::move(under_way);
  return parents;
}

std::vector<Hypothesis> Beams::best_finished(Sentence sentence) const {
  auto& finished = sentence.finished;
  std::stable_sort(finished.begin(), finished.end(), [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  finished.resize(std::min(finished.size(), static_cast<size_t>(settings_.options.n_best)));
  return std::move(finished);
}

}  // namespace lacuna
