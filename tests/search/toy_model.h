#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "base/random.h"
#include "search/search.h"

namespace lacuna {

using Tokens = std::vector<TokenId>;
/// Returns a toy model's logits, one for each token, given the source and the target tokens so far.
using ToyTable = std::function<std::vector<float>(const Tokens& src, const Tokens& tokens)>;

inline constexpr float kNever = -std::numeric_limits<float>::infinity();

/// A cache that stores the tokens of every hypothesis; its alignment has all weight on the source token of the same
/// position.
class ToyCache : public DecoderCache {
 public:
  explicit ToyCache(const std::vector<Tokens>& sources) : sources_(sources), histories_(sources.size()) {
    for (size_t s = 0; s < sources.size(); ++s) sentences_.push_back(static_cast<int32_t>(s));
  }
  void select(const std::vector<int32_t>& parents) override {
    std::vector<Tokens> histories;
    std::vector<int32_t> sentences;
    for (const int32_t parent : parents) {
      histories.push_back(histories_[static_cast<size_t>(parent)]);
      sentences.push_back(sentences_[static_cast<size_t>(parent)]);
    }
    histories_ = std::move(histories);
    sentences_ = std::move(sentences);
  }
  void join(DecoderCache& fresh) override {
    const auto& other = dynamic_cast<const ToyCache&>(fresh);
    for (int32_t& sentence : sentences_) sentence += static_cast<int32_t>(other.sources_.size());
    for (size_t s = 0; s < other.sources_.size(); ++s) sentences_.push_back(static_cast<int32_t>(s));
    sources_.insert(sources_.begin(), other.sources_.begin(), other.sources_.end());
    histories_.resize(sentences_.size());
  }
  const std::vector<int32_t>& sentences() const override { return sentences_; }
  void set_candidates(const std::vector<std::vector<int32_t>>&) override {}
  void set_alignment(AlignmentSource source) override { is_aligned_ = source.layer >= 0; }
  const std::vector<std::vector<float>>& alignment() const override { return alignment_; }

  /// Appends the last tokens; returns the logits [N * V] of the next.
  std::vector<float> step(const Tokens& tokens, const ToyTable& table) {
    std::vector<float> logits;
    alignment_.clear();
    for (size_t i = 0; i < histories_.size(); ++i) {
      const Tokens& src = sources_[static_cast<size_t>(sentences_[i])];
      if (tokens[i] != kBos) histories_[i].push_back(tokens[i]);
      const std::vector<float> row = table(src, histories_[i]);
      logits.insert(logits.end(), row.begin(), row.end());
      if (!is_aligned_) continue;
      alignment_.emplace_back(src.size(), 0.0F)[std::min(histories_[i].size(), src.size() - 1)] = 1;
    }
    return logits;
  }

 private:
  std::vector<Tokens> sources_, histories_;
  std::vector<int32_t> sentences_;
  std::vector<std::vector<float>> alignment_;
  bool is_aligned_ = false;
};

/// A model that is given by a table.
class ToyModel : public StepModel {
 public:
  ToyModel(int64_t vocab_size, ToyTable table, int64_t max_positions = 0)
      : vocab_size_(vocab_size), table_(std::move(table)), max_positions_(max_positions) {}
  std::unique_ptr<DecoderCache> start(const std::vector<Tokens>& sources) override { return std::make_unique<ToyCache>(sources); }
  Logits step(const Tokens& tokens, DecoderCache& cache) override {
    ++steps;
    rows += cache.num_hypotheses();
    const std::vector<float> logits = dynamic_cast<ToyCache&>(cache).step(tokens, table_);
    return Logits(at::tensor(logits).view({-1, vocab_size_}));
  }
  int64_t vocab_size() const override { return vocab_size_; }
  int64_t max_positions() const override { return max_positions_; }

  int64_t steps = 0, rows = 0;  ///< number of steps, and of rows in them

 private:
  int64_t vocab_size_;
  ToyTable table_;
  int64_t max_positions_;
};

/// A table of pseudo-random logits that depend on the source and all tokens so far; eos becomes likelier with the
/// length.
inline ToyTable random_table(int64_t vocab_size, uint64_t seed = 1) {
  return [=](const Tokens& src, const Tokens& tokens) {
    uint64_t key = seed;
    for (const TokenId token : src) key = mix(key, static_cast<uint64_t>(token));
    for (const TokenId token : tokens) key = mix(key, static_cast<uint64_t>(token) + 1000);
    RandomStream random(key);
    std::vector<float> logits;
    for (int64_t v = 0; v < vocab_size; ++v) logits.push_back(static_cast<float>(4 * random.next_unit()));
    logits[kEos] += 0.3F * static_cast<float>(tokens.size()) - 1;
    return logits;
  };
}

/// A table with the same logits after every history.
inline ToyTable constant_table(std::vector<float> logits) {
  return [=](const Tokens&, const Tokens&) { return logits; };
}

/// A table that continues `text` with probability near 1; all other tokens have the same logit.
inline ToyTable says(const Tokens& text, int64_t vocab_size) {
  return [=](const Tokens&, const Tokens& tokens) {
    std::vector<float> logits(static_cast<size_t>(vocab_size), 0);
    logits[static_cast<size_t>(tokens.size() < text.size() ? text[tokens.size()] : kEos)] = 10;
    return logits;
  };
}

inline SearchSettings settings_with(const TranslateOptions& options, Tokens blocked = {}) {
  return {options, Constraints(options, std::move(blocked)), -1, 1};
}

inline TranslateOptions beam_of(int64_t beam_size, int64_t n_best = 1) {
  TranslateOptions options;
  options.beam_size = beam_size;
  options.n_best = n_best;
  return options;
}

inline std::vector<SearchInput> inputs_of(const std::vector<Tokens>& sources) {
  std::vector<SearchInput> inputs;
  for (const Tokens& src : sources) inputs.push_back({src, {}, static_cast<int64_t>(inputs.size())});
  return inputs;
}

/// Returns the translations of one source.
inline std::vector<Hypothesis> search_one(StepModel& model, const Tokens& src, const SearchSettings& settings) {
  return search(model, inputs_of({src}), settings).front();
}

/// Searches with room for so many source tokens, so that sentences leave and enter the batch.
inline SearchResults search_with_room(int64_t batch_tokens, StepModel& model, const std::vector<SearchInput>& inputs,
                                      const SearchSettings& settings) {
  FixedSearchQueue queue(inputs, batch_tokens);
  search(model, queue, settings);
  return std::move(queue).results();
}

/// Expects the same results, bit for bit, from sentences searched alone, in one batch, and in a batch that they leave
/// and enter.
inline void expect_no_trace_of_the_batch(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings) {
  const SearchResults together = search(model, inputs, settings);
  ASSERT_EQ(together.size(), inputs.size());
  for (const int64_t batch_tokens : {1, 12, 40}) {
    const SearchResults found = search_with_room(batch_tokens, model, inputs, settings);
    for (size_t i = 0; i < inputs.size(); ++i) {
      ASSERT_EQ(found[i].size(), together[i].size());
      for (size_t n = 0; n < found[i].size(); ++n) {
        EXPECT_EQ(found[i][n].tokens, together[i][n].tokens) << "sentence " << i << ", room for " << batch_tokens;
        EXPECT_EQ(found[i][n].score, together[i][n].score) << "sentence " << i << ", room for " << batch_tokens;
        EXPECT_EQ(found[i][n].token_log_probs, together[i][n].token_log_probs) << "sentence " << i << ", room for " << batch_tokens;
        ASSERT_EQ(found[i][n].alignment.size(), together[i][n].alignment.size());
        for (size_t t = 0; t < found[i][n].alignment.size(); ++t)
          EXPECT_EQ(*found[i][n].alignment[t], *together[i][n].alignment[t]) << "sentence " << i << ", room for " << batch_tokens;
      }
    }
  }
}

/// Returns the tokens of the best translation of one source.
inline Tokens best_of(StepModel& model, const TranslateOptions& options, const Tokens& src = {5, 6, kEos}, Tokens blocked = {}) {
  return search(model, inputs_of({src}), settings_with(options, std::move(blocked))).front().front().tokens;
}

/// Returns the log-softmax of one row, in double precision.
inline std::vector<double> log_softmax(const std::vector<float>& logits) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  std::vector<double> log_probs;
  for (const float logit : logits) log_probs.push_back(logit - std::log(sum));
  return log_probs;
}

}  // namespace lacuna
