#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/interrupt.h"
#include "search/length_penalty.h"
#include "search/search.h"

namespace lacuna {
namespace {

constexpr size_t kRowsToDivide = 64;       // fewer are projected together, so that the projection is read once
constexpr double kLargestRounding = 1e-4;  // by which rounding may raise a log-probability above 0

/// A continuation of a live hypothesis by one token.
struct Candidate {
  int32_t row = 0;  ///< the live hypothesis: its row in the decoder cache
  TokenId token = 0;
  float token_log_prob = 0;  ///< as the model gave it
  double log_prob = 0;       ///< the whole hypothesis', after the repetition penalty
  bool is_forced = false;    ///< eos, at the length limit or because nothing else is allowed
};

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

/// The live and finished hypotheses of the sentences in the batch. Live ones are in the order of the decoder cache's
/// rows: sentence by sentence, best first.
class Beams {
 public:
  using SentenceCandidates = std::vector<std::vector<Candidate>>;

  /// Reads sentences from the queue and stores their translations in it.
  Beams(SearchQueue& queue, const SearchSettings& settings, int64_t max_positions)
      : queue_(queue), settings_(settings), max_positions_(max_positions) {}

  /// Adds sentences of the queue; their rows follow the current ones.
  void add(const std::vector<size_t>& places) {
    for (const size_t place : places) {
      const SearchInput& input = queue_.input(place);
      const TranslateOptions& options = options_of(input, settings_);
      sentence_of_row_.push_back(static_cast<int32_t>(sentences_.size()));
      sentences_.push_back({.place = place,
                            .input = &input,
                            .options = &options,
                            .constraints = &constraints_of(input, settings_),
                            .finished = {},
                            .texts = {},
                            .limit = length_limit(options, input, max_positions_)});
      live_.emplace_back();
    }
  }

  bool all_finished() const { return live_.empty(); }

  /// Returns the number of source tokens that the sentences in the batch count as.
  int64_t src_tokens() const {
    return std::accumulate(sentences_.begin(), sentences_.end(), int64_t{0},
                           [](int64_t sum, const Sentence& sentence) { return sum + sentence.input->batch_tokens(); });
  }

  /// Returns the most tokens that live hypotheses may have at once.
  int64_t most_tokens() const {
    return std::accumulate(sentences_.begin(), sentences_.end(), int64_t{0},
                           [](int64_t sum, const Sentence& sentence) { return sum + sentence.options->beam_size * sentence.limit; });
  }

  /// Returns true if the alignment of a sentence is asked for.
  bool are_aligned() const {
    return std::ranges::any_of(sentences_, [](const Sentence& sentence) { return sentence.input->is_aligned; });
  }

  std::vector<TokenId> last_tokens() const {
    std::vector<TokenId> tokens;
    for (const Hypothesis& hypothesis : live_) tokens.push_back(hypothesis.last_token());
    return tokens;
  }

  /// Returns the best continuations of the live hypotheses, of each sentence as many as a step may need, best first.
  /// Projects the better three fifths of each beam first, and then those of the other hypotheses that may still matter.
  /// That share leaves the fewest rows to project. A GPU projects all at once.
  SentenceCandidates candidates(const Logits& logits) {
    SentenceCandidates all(sentences_.size());
    const bool is_divided = live_.size() >= kRowsToDivide && !logits.are_on_gpu();
    for (const bool are_better : {true, false}) {
      std::vector<int32_t> rows;
      int64_t rank = 0;
      for (size_t row = 0; row < live_.size(); ++row) {
        const int32_t sentence = sentence_of_row_[row];
        const int64_t beam_size = sentence_of(static_cast<int32_t>(row)).options->beam_size;
        const int64_t at_first = is_divided ? (3 * beam_size + 4) / 5 : beam_size;
        rank = row > 0 && sentence == sentence_of_row_[row - 1] ? rank + 1 : 0;
        if ((rank < at_first) == are_better && may_matter(static_cast<int32_t>(row), all[static_cast<size_t>(sentence)]))
          rows.push_back(static_cast<int32_t>(row));
      }
      add_candidates(rows, logits, all);
    }
    return all;
  }

  /// Extends hypotheses by the best candidates; returns the row that each new live hypothesis continues. Moves the
  /// translations of finished sentences to the queue. `alignment` [rows] may be empty.
  std::vector<int32_t> extend(const SentenceCandidates& candidates, const std::vector<std::vector<float>>& alignment) {
    std::vector<AlignmentRow> rows;
    rows.reserve(alignment.size());
    for (const auto& weights : alignment) rows.push_back(std::make_shared<const std::vector<float>>(weights));
    std::vector<Beam> beams(sentences_.size());
    const std::vector<AlignmentRow> none;
    for_sentences([&](size_t s) {
      Sentence& sentence = sentences_[s];
      if (queue_.is_wanted(sentence.place)) beams[s] = extended(sentence, candidates[s], sentence.input->is_aligned ? rows : none);
    });
    std::vector<int32_t> parents;
    std::vector<Sentence> unfinished;
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
      sentence_of_row_.resize(live_.size(), static_cast<int32_t>(unfinished.size()));
      unfinished.push_back(std::move(sentences_[s]));
    }
    sentences_ = std::move(unfinished);
    return parents;
  }

 private:
  struct Sentence {
    size_t place = 0;  // in the queue
    const SearchInput* input = nullptr;
    const TranslateOptions* options = nullptr;
    const Constraints* constraints = nullptr;
    std::vector<Hypothesis> finished;
    std::vector<std::string> texts;  // of `finished`, if they are to differ
    int64_t limit = 0;
  };

  /// The live hypotheses of one sentence after a step, and the row that each continues.
  struct Beam {
    std::vector<Hypothesis> live;
    std::vector<int32_t> parents;
  };

  /// Calls f(s) for each sentence, on all threads.
  template <class F>
  void for_sentences(F f) const {
    constexpr int64_t kSentencesPerTask = 16;
    at::parallel_for(0, static_cast<int64_t>(sentences_.size()), kSentencesPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) f(static_cast<size_t>(s));
    });
  }

  const Sentence& sentence_of(int32_t row) const { return sentences_[static_cast<size_t>(sentence_of_row_[static_cast<size_t>(row)])]; }

  TokenId forced_token(int32_t row) const {
    const Sentence& sentence = sentence_of(row);
    return forced_after(live_[static_cast<size_t>(row)], *sentence.input, sentence.limit);
  }

  /// Returns the candidates of a row, whose index in `best` is i. Applies the constraints and the repetition penalty
  /// (Keskar et al. 2019, arXiv:1909.05858, section 4.1): log-probabilities of tokens that the hypothesis contains are
  /// multiplied by `repetition_penalty`. Where no token is allowed, or none has a probability, eos is forced.
  std::vector<Candidate> best_of_row(int32_t row, size_t i, const BestTokens& best) const {
    const Hypothesis& hypothesis = live_[static_cast<size_t>(row)];
    const Sentence& sentence = sentence_of(row);
    const std::vector<TokenId> blocked = sentence.constraints->blocked_after(hypothesis);
    const double repetition_penalty = sentence.options->repetition_penalty;
    const bool is_penalized = repetition_penalty != 1;
    std::vector<Candidate> candidates;
    float eos_log_prob = kImpossible;
    const auto k = static_cast<size_t>(best.k);
    for (size_t j = i * k; j < (i + 1) * k; ++j) {
      const TokenId token = best.tokens[j];
      const float log_prob = best.log_probs[j];
      require_number(log_prob, token);
      if (token == kEos) eos_log_prob = log_prob;
      if (log_prob == kImpossible || contains(blocked, token)) continue;
      const double penalty = is_penalized && contains(hypothesis.tokens, token) ? repetition_penalty : 1;
      candidates.push_back({row, token, log_prob, hypothesis.log_prob + penalty * log_prob, false});
    }
    if (candidates.empty()) candidates.push_back({row, kEos, eos_log_prob, hypothesis.log_prob + eos_log_prob, true});
    return candidates;
  }

  /// Returns how many candidates of a sentence a step may need: half of them may end in eos.
  static int64_t candidates_needed(const Sentence& sentence) { return 2 * sentence.options->beam_size; }

  /// Returns how many of the best tokens of each row are needed for the best allowed ones to be among them: blocked tokens may precede
  /// these, and penalized ones may fall behind them.
  int64_t tokens_needed(const std::vector<int32_t>& rows, int64_t vocab_size) const {
    int64_t most = 1;
    for (const int32_t row : rows) {
      const Sentence& sentence = sentence_of(row);
      const int64_t length = live_[static_cast<size_t>(row)].length();
      const double penalty = sentence.options->repetition_penalty;
      if (penalty < 1) return vocab_size;  // repeated tokens may rise from anywhere
      most = std::max(most, candidates_needed(sentence) + sentence.constraints->max_blocked(length) + (penalty > 1 ? length : 0));
    }
    return std::min(vocab_size, most);
  }

  /// Returns the only possible continuation of a row.
  Candidate forced_candidate(int32_t row, TokenId token, float log_prob) const {
    require_number(log_prob, token);
    return {row, token, log_prob, live_[static_cast<size_t>(row)].log_prob + log_prob, token == kEos};
  }

  /// Returns [sentences + 1]: the index in `rows` (ascending) of each sentence's first row, and finally the number of
  /// rows.
  std::vector<size_t> borders(const std::vector<int32_t>& rows) const {
    std::vector<size_t> borders(sentences_.size() + 1, 0);
    for (const int32_t row : rows) ++borders[static_cast<size_t>(sentence_of_row_[static_cast<size_t>(row)]) + 1];
    std::partial_sum(borders.begin(), borders.end(), borders.begin());
    return borders;
  }

  /// Adds the candidates of these rows to those of their sentences.
  void add_candidates(const std::vector<int32_t>& rows, const Logits& logits, SentenceCandidates& all) {
    if (rows.empty()) return;
    std::vector<TokenId> forced;
    forced.reserve(rows.size());
    for (const int32_t row : rows) forced.push_back(forced_token(row));
    std::vector<TokenId> asked = forced;
    std::replace(asked.begin(), asked.end(), kNotForced, kEos);
    logits.find_best(rows, tokens_needed(rows, logits.vocab_size()), asked, best_);
    const std::vector<size_t> first = borders(rows);
    for_sentences([&](size_t s) {
      for (size_t i = first[s]; i < first[s + 1]; ++i) {
        if (forced[i] != kNotForced) {
          all[s].push_back(forced_candidate(rows[i], forced[i], best_.asked[i]));
        } else {
          const std::vector<Candidate> found = best_of_row(rows[i], i, best_);
          all[s].insert(all[s].end(), found.begin(), found.end());
        }
      }
      sort_and_cut(all[s], static_cast<size_t>(candidates_needed(sentences_[s])));
    });
  }

  /// Returns false if no candidate of a row's hypothesis can be taken, given these other candidates of its sentence.
  /// Log-probabilities only fall, whatever the repetition penalty: a hypothesis cannot stay in the beam if `beam_size`
  /// candidates are better than it is now.
  bool may_matter(int32_t row, const std::vector<Candidate>& candidates) const {
    const double bound = live_[static_cast<size_t>(row)].log_prob + kLargestRounding;
    const auto better = std::count_if(candidates.begin(), candidates.end(),
                                      [=](const Candidate& candidate) { return candidate.token != kEos && candidate.log_prob > bound; });
    return better < sentence_of(row).options->beam_size;
  }

  Hypothesis continued(const Sentence& sentence, const Candidate& candidate, const std::vector<AlignmentRow>& alignment) const {
    Hypothesis next = live_[static_cast<size_t>(candidate.row)];
    next.tokens.push_back(candidate.token);
    next.token_log_probs.push_back(candidate.token_log_prob);
    next.log_prob = candidate.log_prob;
    next.is_truncated = candidate.is_forced;
    if (!alignment.empty()) next.alignment.push_back(alignment[static_cast<size_t>(candidate.row)]);
    if (next.is_finished()) next.score = next.log_prob / length_penalty(*sentence.options, next.length());
    return next;
  }

  /// Returns how many translations of a sentence are wanted.
  static size_t n_best_of(const Sentence& sentence) {
    return static_cast<size_t>(sentence.input->n_best > 0 ? sentence.input->n_best : sentence.options->n_best);
  }

  /// Returns true if no live hypothesis may still enter the n_best: by the bound at the length limit, or, once
  /// `beam_size` hypotheses are finished, by the score that it would have at its length now.
  bool is_done(const Sentence& sentence, const std::vector<Hypothesis>& live) const {
    if (live.empty()) return true;
    const size_t n_best = n_best_of(sentence);
    if (sentence.finished.size() < n_best) return false;
    std::vector<double> scores;
    for (const Hypothesis& hypothesis : sentence.finished) scores.push_back(hypothesis.score);
    std::nth_element(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(n_best - 1), scores.end(), std::greater<>());
    const bool is_full = static_cast<int64_t>(sentence.finished.size()) >= sentence.options->beam_size;
    const int64_t length = is_full ? live.front().length() : sentence.limit;
    return live.front().log_prob / length_penalty(*sentence.options, length) <= scores[n_best - 1];
  }

  /// Adds a finished hypothesis; where texts are to differ, only the better one of each text stays.
  void add_finished(Sentence& sentence, Hypothesis hypothesis) const {
    if (settings_.text_of && n_best_of(sentence) > 1) {
      std::string text = settings_.text_of(hypothesis);
      if (const auto same = std::ranges::find(sentence.texts, text); same != sentence.texts.end()) {
        Hypothesis& other = sentence.finished[static_cast<size_t>(same - sentence.texts.begin())];
        if (hypothesis.score > other.score) other = std::move(hypothesis);
        return;
      }
      sentence.texts.push_back(std::move(text));
    }
    sentence.finished.push_back(std::move(hypothesis));
  }

  /// Turns the candidates of a sentence into finished and live hypotheses; returns an empty beam if the sentence is
  /// finished.
  Beam extended(Sentence& sentence, const std::vector<Candidate>& candidates, const std::vector<AlignmentRow>& alignment) {
    Beam beam;
    for (const Candidate& candidate : candidates) {
      if (static_cast<int64_t>(beam.live.size()) >= sentence.options->beam_size) break;
      Hypothesis next = continued(sentence, candidate, alignment);
      if (next.is_finished()) {
        add_finished(sentence, std::move(next));
      } else {
        beam.live.push_back(std::move(next));
        beam.parents.push_back(candidate.row);
      }
    }
    return is_done(sentence, beam.live) ? Beam() : beam;
  }

  /// Returns the n_best finished hypotheses of a sentence, best first.
  std::vector<Hypothesis> best_finished(Sentence sentence) const {
    auto& finished = sentence.finished;
    std::stable_sort(finished.begin(), finished.end(), [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    finished.resize(std::min(finished.size(), n_best_of(sentence)));
    return std::move(finished);
  }

  SearchQueue& queue_;
  const SearchSettings& settings_;
  const int64_t max_positions_;
  std::vector<Sentence> sentences_;
  std::vector<Hypothesis> live_;
  std::vector<int32_t> sentence_of_row_;
  BestTokens best_;  // of the last rows
};

}  // namespace

std::unique_ptr<DecoderCache> start(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings) {
  std::vector<std::vector<TokenId>> sources, candidates;
  sources.reserve(inputs.size());
  for (const SearchInput& input : inputs) {
    sources.push_back(input.src);
    if (settings.shortlist) candidates.push_back(settings.shortlist->candidates(input.src, input.prefix));
  }
  auto cache = model.start(sources);
  cache->set_alignment({settings.alignment_layer, settings.alignment_head});
  if (settings.shortlist) cache->set_candidates(candidates);
  return cache;
}

void beam_search(StepModel& model, SearchQueue& queue, const SearchSettings& settings) {
  Beams beams(queue, settings, model.max_positions());
  std::unique_ptr<DecoderCache> cache;
  const std::vector<std::vector<float>> no_alignment;
  while (true) {
    if (const std::vector<size_t> added = queue.take(beams.src_tokens()); !added.empty()) {
      auto fresh = start(model, queue.inputs(added), settings);
      if (beams.all_finished()) {
        cache = std::move(fresh);
      } else {
        cache->join(*fresh);
      }
      beams.add(added);
      cache->reserve(beams.most_tokens());
    }
    if (beams.all_finished()) return;
    stop_if_interrupted("translating");
    if (settings.look) settings.look();
    const bool is_aligned = settings.alignment_layer >= 0 && beams.are_aligned();
    cache->set_alignment({is_aligned ? settings.alignment_layer : -1, settings.alignment_head});
    const Logits logits = model.step(beams.last_tokens(), *cache);
    cache->select(beams.extend(beams.candidates(logits), is_aligned ? cache->alignment() : no_alignment));
  }
}

void search(StepModel& model, SearchQueue& queue, const SearchSettings& settings) {
  settings.options.sampling == Sampling::kNone ? beam_search(model, queue, settings) : sample(model, queue, settings);
}

SearchResults search(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings) {
  FixedSearchQueue queue(inputs, std::numeric_limits<int64_t>::max());
  search(model, queue, settings);
  return std::move(queue).results();
}

}  // namespace lacuna
