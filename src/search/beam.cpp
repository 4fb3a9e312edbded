#include "search/beam.h"

#include <algorithm>

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

Beams::Beams(const std::vector<SearchInput>& inputs, const SearchSettings& settings, int64_t max_positions)
    : inputs_(inputs), settings_(settings), sentences_(inputs.size()), live_(inputs.size()) {
  for (size_t s = 0; s < inputs.size(); ++s) {
    sentences_[s].limit = length_limit(settings.options, static_cast<int64_t>(inputs[s].src.size()), max_positions);
    sentence_of_row_.push_back(static_cast<int32_t>(s));
  }
}

std::vector<TokenId> Beams::last_tokens() const {
  std::vector<TokenId> tokens;
  for (const Hypothesis& hypothesis : live_) tokens.push_back(hypothesis.last_token());
  return tokens;
}

/// The only token that may follow a hypothesis: the next of the prefix, or eos at the length limit.
TokenId Beams::forced_token(int32_t row) const {
  const auto s = static_cast<size_t>(sentence_of_row_[static_cast<size_t>(row)]);
  const auto length = static_cast<size_t>(live_[static_cast<size_t>(row)].length());
  if (static_cast<int64_t>(length) + 1 >= sentences_[s].limit) return kEos;
  return length < inputs_[s].prefix.size() ? inputs_[s].prefix[length] : kNotForced;
}

std::vector<Candidate> Beams::best_of_row(int32_t row, const BestTokens& best) const {
  const Hypothesis& hypothesis = live_[static_cast<size_t>(row)];
  const std::vector<TokenId> blocked = settings_.constraints.blocked_after(hypothesis);
  std::vector<Candidate> candidates;
  for (int64_t i = row * best.k; i < (row + 1) * best.k; ++i) {
    const TokenId token = best.tokens[static_cast<size_t>(i)];
    const float log_prob = best.log_probs[static_cast<size_t>(i)];
    if (!contains(blocked, token)) candidates.push_back({row, token, log_prob, hypothesis.log_prob + log_prob, false});
  }
  return candidates;
}

/// Repetition penalty (Keskar et al. 2019, arXiv:1909.05858, section 4.1, on log-probabilities): tokens that are there already cost
/// `repetition_penalty` as much.
std::vector<Candidate> Beams::penalised_row(int32_t row, const float* log_probs, int64_t vocab_size) const {
  const Hypothesis& hypothesis = live_[static_cast<size_t>(row)];
  std::vector<char> is_blocked(static_cast<size_t>(vocab_size)), is_repeated(static_cast<size_t>(vocab_size));
  for (const TokenId token : settings_.constraints.blocked_after(hypothesis)) is_blocked[static_cast<size_t>(token)] = 1;
  for (const TokenId token : hypothesis.tokens) is_repeated[static_cast<size_t>(token)] = 1;
  std::vector<Candidate> candidates;
  for (TokenId token = 0; token < vocab_size; ++token) {
    if (is_blocked[static_cast<size_t>(token)] != 0) continue;
    const double penalty = is_repeated[static_cast<size_t>(token)] != 0 ? settings_.options.repetition_penalty : 1;
    candidates.push_back({row, token, log_probs[token], hypothesis.log_prob + penalty * log_probs[token], false});
  }
  sort_and_cut(candidates, static_cast<size_t>(2 * settings_.options.beam_size));
  return candidates;
}

std::vector<std::vector<Candidate>> Beams::candidates(const Logits& logits) const {
  const auto wanted = 2 * settings_.options.beam_size;
  int64_t longest = 0;
  std::vector<TokenId> forced;
  for (size_t row = 0; row < live_.size(); ++row) {
    longest = std::max(longest, live_[row].length());
    forced.push_back(forced_token(static_cast<int32_t>(row)));
  }
  std::vector<TokenId> asked;
  for (const TokenId token : forced) asked.push_back(token == kNotForced ? kEos : token);
  const std::vector<float> log_probs_of_asked = logits.of(asked);
  const bool is_penalised = settings_.options.repetition_penalty != 1;
  const Tensor rows = is_penalised ? logits.log_probs().contiguous() : Tensor();
  const BestTokens best =
      is_penalised ? BestTokens{} : logits.best(std::min(wanted + settings_.constraints.max_blocked(longest), logits.vocab_size()));
  std::vector<std::vector<Candidate>> all(sentences_.size());
  for (size_t row = 0; row < live_.size(); ++row) {
    const auto r = static_cast<int32_t>(row);
    const float of_asked = log_probs_of_asked[row];
    std::vector<Candidate> found;
    if (forced[row] == kNotForced)
      found = is_penalised ? penalised_row(r, rows.const_data_ptr<float>() + r * logits.vocab_size(), logits.vocab_size())
                           : best_of_row(r, best);
    if (found.empty()) found = {{r, asked[row], of_asked, live_[row].log_prob + of_asked, asked[row] == kEos}};
    auto& candidates = all[static_cast<size_t>(sentence_of_row_[row])];
    candidates.insert(candidates.end(), found.begin(), found.end());
  }
  for (auto& candidates : all) sort_and_cut(candidates, static_cast<size_t>(wanted));
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
  if (live.empty() || static_cast<int64_t>(sentence.finished.size()) >= settings_.options.beam_size) return true;
  const auto n_best = static_cast<size_t>(settings_.options.n_best);
  if (sentence.finished.size() < n_best || settings_.options.repetition_penalty < 1) return false;
  std::vector<double> scores;
  for (const Hypothesis& hypothesis : sentence.finished) scores.push_back(hypothesis.score);
  std::nth_element(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(n_best - 1), scores.end(), std::greater<>());
  return live.front().log_prob / length_penalty(settings_.options, sentence.limit) <= scores[n_best - 1];
}

std::vector<int32_t> Beams::extend(const std::vector<std::vector<Candidate>>& candidates,
                                   const std::vector<std::vector<float>>& alignment) {
  std::vector<AlignmentRow> rows;
  for (const auto& weights : alignment) rows.push_back(std::make_shared<const std::vector<float>>(weights));
  std::vector<Hypothesis> live;
  std::vector<int32_t> parents, sentence_of_row;
  for (size_t s = 0; s < sentences_.size(); ++s) {
    std::vector<Hypothesis> beam;
    std::vector<int32_t> beam_parents;
    for (const Candidate& candidate : candidates[s]) {
      if (static_cast<int64_t>(beam.size()) >= settings_.options.beam_size) break;
      Hypothesis next = continued(candidate, rows);
      if (next.is_finished()) {
        sentences_[s].finished.push_back(std::move(next));
      } else {
        beam.push_back(std::move(next));
        beam_parents.push_back(candidate.row);
      }
    }
    if (is_done(sentences_[s], beam)) continue;
    for (size_t i = 0; i < beam.size(); ++i) {
      live.push_back(std::move(beam[i]));
      parents.push_back(beam_parents[i]);
      sentence_of_row.push_back(static_cast<int32_t>(s));
    }
  }
  live_ = std::move(live);
  sentence_of_row_ = std::move(sentence_of_row);
  return parents;
}

SearchResults Beams::results() && {
  SearchResults results;
  for (Sentence& sentence : sentences_) {
    auto& finished = sentence.finished;
    std::stable_sort(finished.begin(), finished.end(), [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    finished.resize(std::min(finished.size(), static_cast<size_t>(settings_.options.n_best)));
    results.push_back(std::move(finished));
  }
  return results;
}

}  // namespace lacuna
