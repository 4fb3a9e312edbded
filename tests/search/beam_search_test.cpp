#include <ATen/Parallel.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <set>

#include "../base/child.h"
#include "../text/other_vocabulary.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "toy_model.h"

namespace lacuna {
namespace {

constexpr int64_t kBeamVocabulary = 12;

/// Reference: greedy search, which takes the likeliest allowed token at each step.
Tokens greedy(const ToyTable& table, const Tokens& src, int64_t longest) {
  Tokens tokens;
  while (tokens.empty() || tokens.back() != kEos) {
    const std::vector<float> logits = table(src, tokens);
    const auto best = std::max_element(logits.begin() + kEos, logits.end());  // unk and bos stand before eos
    tokens.push_back(static_cast<int64_t>(tokens.size()) + 1 == longest ? kEos : static_cast<TokenId>(best - logits.begin()));
  }
  return tokens;
}

std::vector<Tokens> some_sources() {
  std::vector<Tokens> sources;
  for (TokenId i = 0; i < 40; ++i) {
    Tokens src;
    for (TokenId t = 0; t <= i % 7; ++t) src.push_back(3 + (i * 5 + t * t) % 9);
    src.push_back(kEos);
    sources.push_back(src);
  }
  return sources;
}

TEST(BeamSearch, WithBeamOneEqualsGreedy) {
  const ToyTable table = random_table(kBeamVocabulary);
  ToyModel model(kBeamVocabulary, table);
  const TranslateOptions options = beam_of(1);
  for (const Tokens& src : some_sources())
    EXPECT_EQ(best_of(model, options, src), greedy(table, src, length_limit(options, {src, {}, 0}, 0)));
}

TEST(BeamSearch, BatchDoesNotChangeResults) {
  ToyModel model(kBeamVocabulary, random_table(kBeamVocabulary));
  expect_no_trace_of_the_batch(model, inputs_of(some_sources()), settings_with(beam_of(4, 3)));
}

/// Returns inputs, each third of which has options of its own, and each third others.
std::vector<SearchInput> inputs_with_options_of_their_own() {
  std::vector<SearchInput> inputs = inputs_of(some_sources());
  const VocabularyPtr vocabulary = token_list_from_bytes("a\nb\nc\nd\ne\nf\ng\nh\ni\n", "letters");
  TranslateOptions narrow = beam_of(1), wide = beam_of(9, 4);
  narrow.max_length = 4;
  narrow.repetition_penalty = 1.3;
  wide.min_length = 3;
  wide.length_penalty = .5;
  wide.no_repeat_ngram_size = 1;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (i % 3 > 0) inputs[i].own = std::make_shared<const SentenceOptions>(i % 3 == 1 ? narrow : wide, *vocabulary);
  return inputs;
}

TEST(BeamSearch, SentencesMayHaveOptionsOfTheirOwn) {
  ToyModel model(kBeamVocabulary, random_table(kBeamVocabulary));
  const SearchSettings settings = settings_with(beam_of(4, 3));
  const std::vector<SearchInput> inputs = inputs_with_options_of_their_own();
  const SearchResults found = search(model, inputs, settings);
  for (size_t i = 0; i < inputs.size(); ++i) {
    SearchSettings of_sentence = settings;
    if (inputs[i].own) of_sentence = settings_with(inputs[i].own->options);
    SearchInput plain = inputs[i];
    plain.own = nullptr;
    const std::vector<Hypothesis> expected = search(model, {plain}, of_sentence).front();
    ASSERT_EQ(found[i].size(), expected.size());
    for (size_t rank = 0; rank < expected.size(); ++rank) {
      EXPECT_EQ(found[i][rank].tokens, expected[rank].tokens);
      EXPECT_EQ(found[i][rank].score, expected[rank].score);
    }
  }
}

TEST(BeamSearch, ASentenceWithAWideBeamTakesTheRoomOfSeveral) {
  std::vector<SearchInput> inputs(3, {{3, 4, 5, kEos}, {}, 0});
  inputs[0].share = 3;
  FixedSearchQueue queue(inputs, 16);
  EXPECT_EQ(queue.take(0), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(inputs[0].batch_tokens(), 12);
}

/// Pseudo-random logits, multiplied by a factor.
ToyTable sure_table(float factor) {
  return [=, table = random_table(kBeamVocabulary, 7)](const Tokens& src, const Tokens& tokens) {
    std::vector<float> logits = table(src, tokens);
    for (float& logit : logits) logit *= factor;
    return logits;
  };
}

// In a batch, hypotheses that others have driven out of the beam are not looked at; one sentence's all are.
TEST(BeamSearch, LeavesOutNoneThatMatters) {
  for (const float factor : {1.F, 2.F, 3.F, 10.F}) {
    ToyModel model(kBeamVocabulary, sure_table(factor));
    for (const int64_t beam_size : {3, 4, 5}) {
      TranslateOptions options = beam_of(beam_size, beam_size);
      for (const double penalty : {.5, 1., 1.2}) {
        options.repetition_penalty = penalty;
        options.min_length = beam_size;
        expect_no_trace_of_the_batch(model, inputs_of(some_sources()), settings_with(options));
      }
    }
  }
}

TEST(BeamSearch, NBestComeBestFirstAndDiffer) {
  ToyModel model(kBeamVocabulary, random_table(kBeamVocabulary));
  for (const auto& found : search(model, inputs_of(some_sources()), settings_with(beam_of(5, 5)))) {
    ASSERT_EQ(found.size(), 5u);
    for (size_t n = 1; n < found.size(); ++n) {
      EXPECT_GE(found[n - 1].score, found[n].score);
      for (size_t m = 0; m < n; ++m) EXPECT_NE(found[m].tokens, found[n].tokens);
    }
  }
}

TEST(BeamSearch, OfTextsThatAreToDifferKeepsTheBestOfEach) {
  ToyModel model(kBeamVocabulary, random_table(kBeamVocabulary));
  SearchSettings settings = settings_with(beam_of(6, 6));
  const std::vector<SearchInput> inputs = inputs_of(some_sources());
  const auto text_of = [](const Hypothesis& hypothesis) {  // tokens 3 and 4 are written alike
    std::string text;
    for (const TokenId token : hypothesis.tokens) text += static_cast<char>('a' + (token == 3 ? 4 : token));
    return text;
  };
  const SearchResults plain = search(model, inputs, settings);
  settings.text_of = text_of;
  const SearchResults found = search(model, inputs, settings);
  int repeated = 0;
  for (size_t s = 0; s < inputs.size(); ++s) {
    std::map<std::string, double> best;
    for (const Hypothesis& one : plain[s]) repeated += best.emplace(text_of(one), one.score).second ? 0 : 1;
    std::set<std::string> texts;
    for (const Hypothesis& one : found[s]) {
      EXPECT_TRUE(texts.insert(text_of(one)).second);
      const auto known = best.find(text_of(one));
      EXPECT_TRUE(known == best.end() || one.score >= known->second);
    }
    EXPECT_EQ(found[s].size(), plain[s].size());
  }
  EXPECT_GT(repeated, 0);
}

TEST(BeamSearch, EqualTokensGoToTheLowerId) {
  ToyModel model(kBeamVocabulary, [](const Tokens&, const Tokens& tokens) {
    std::vector<float> logits(kBeamVocabulary, 0);
    if (tokens.size() == 2) logits[kEos] = 9;
    logits[kEos] -= tokens.empty() ? 9 : 0;
    return logits;
  });
  EXPECT_EQ(best_of(model, beam_of(3)).front(), 3);
}

TEST(BeamSearch, FinishedHypothesesLeaveTheBatch) {
  ToyModel model(kBeamVocabulary,
                 [](const Tokens& src, const Tokens& tokens) { return says(Tokens(src.size(), 4), kBeamVocabulary)(src, tokens); });
  search(model, inputs_of({{5, kEos}, {5, 5, 5, 5, 5, kEos}}), settings_with(beam_of(1)));
  EXPECT_EQ(model.steps, 7);     // six tokens and eos
  EXPECT_EQ(model.rows, 3 + 7);  // the first sentence is gone after two tokens and eos
}

TEST(BeamSearch, StopsWhenNoLiveHypothesisCanWin) {
  ToyModel model(kBeamVocabulary, says({4, 5}, kBeamVocabulary));
  TranslateOptions options = beam_of(5);
  options.length_penalty_type = LengthPenalty::kNone;
  EXPECT_EQ(best_of(model, options), (Tokens{4, 5, kEos}));
  EXPECT_EQ(model.steps, 3);
}

TEST(BeamSearch, UnlikelyEarlyEndsDoNotStopTheSearch) {
  ToyModel model(kBeamVocabulary, says({4, 5, 6, 7, 8, 9}, kBeamVocabulary));  // eos is the second best token at every step
  EXPECT_EQ(best_of(model, beam_of(2)), (Tokens{4, 5, 6, 7, 8, 9, kEos}));
}

TEST(BeamSearch, AForcedEndIsMarked) {
  ToyModel model(kBeamVocabulary, constant_table({0, 0, -9, 5, 0, 0, 0, 0, 0, 0, 0, 0}));
  TranslateOptions options = beam_of(2);
  options.max_length = 4;
  const Hypothesis found = search(model, inputs_of({{5, kEos}}), settings_with(options)).front().front();
  EXPECT_EQ(found.tokens, (Tokens{3, 3, 3, kEos}));
  EXPECT_TRUE(found.is_truncated);
}

TEST(BeamSearch, AChosenEndIsNotMarked) {
  ToyModel model(kBeamVocabulary, says({4}, kBeamVocabulary));
  EXPECT_FALSE(search(model, inputs_of({{5, kEos}}), settings_with(beam_of(2))).front().front().is_truncated);
}

TEST(BeamSearch, WritesNoMoreThanTheModelsPositions) {
  ToyModel model(kBeamVocabulary, constant_table({0, 0, -9, 5, 0, 0, 0, 0, 0, 0, 0, 0}), 6);
  EXPECT_EQ(best_of(model, beam_of(2)).size(), 6u);
}

TEST(BeamSearch, BeginsWithThePrefix) {
  ToyModel model(kBeamVocabulary, random_table(kBeamVocabulary));
  std::vector<SearchInput> inputs = inputs_of({{5, kEos}, {6, 7, kEos}});
  inputs[0].prefix = {8, 3, 8};
  const SearchResults found = search(model, inputs, settings_with(beam_of(4, 4)));
  for (const Hypothesis& hypothesis : found[0])
    EXPECT_EQ(Tokens(hypothesis.tokens.begin(), hypothesis.tokens.begin() + 3), inputs[0].prefix);
  EXPECT_EQ(found[1].front().tokens, best_of(model, beam_of(4, 4), inputs[1].src));
}

TEST(BeamSearch, BeginsWithAPrefixLongerThanTheRatioAllows) {
  ToyModel model(kBeamVocabulary, says({}, kBeamVocabulary));
  std::vector<SearchInput> inputs = inputs_of({{5, kEos}});
  inputs[0].prefix = Tokens(20, 8);
  const Hypothesis found = search(model, inputs, settings_with(beam_of(2))).front().front();
  Tokens expected = inputs[0].prefix;
  expected.push_back(kEos);
  EXPECT_EQ(found.tokens, expected);
  EXPECT_FALSE(found.is_truncated);
}

TEST(BeamSearch, KeepsOneAlignmentRowForEachToken) {
  ToyModel model(kBeamVocabulary, says({4, 5, 6}, kBeamVocabulary));
  SearchSettings settings = settings_with(beam_of(2));
  settings.alignment_layer = 0;
  const Hypothesis found = search(model, inputs_of({{7, 8, 9, kEos}}), settings).front().front();
  ASSERT_EQ(found.alignment.size(), 4u);
  EXPECT_EQ(*found.alignment[1], (std::vector<float>{0, 1, 0, 0}));
}

TEST(BeamSearch, ProbabilitiesThatAreNotNumbersAreAnError) {
  ToyModel model(kBeamVocabulary, constant_table(std::vector<float>(kBeamVocabulary, std::nanf(""))));
  EXPECT_THROW(best_of(model, beam_of(3)), CheckpointError);
}

TEST(Search, IsGivenUpAtTheNextTokenWhenAnInterruptComes) {
  for (const Sampling sampling : {Sampling::kNone, Sampling::kFull}) {
    TranslateOptions options = beam_of(1);
    options.sampling = sampling;
    EXPECT_EQ(exit_code_of_child([&] {
                at::set_num_threads(1);
                handle_interrupts();
                ToyModel model(kBeamVocabulary, [](const Tokens& src, const Tokens& tokens) {
                  if (tokens.size() == 2) raise(SIGTERM);
                  return says({3, 4, 5, 6, 7, 8}, kBeamVocabulary)(src, tokens);
                });
                try {
                  search_one(model, {3, kEos}, settings_with(options));
                } catch (const Interrupted& interrupted) {
                  return model.steps == 3 ? interrupted.exit_code() : 1;
                }
                return 0;
              }),
              143);
  }
}

TEST(BeamSearch, OfNothingIsNothing) {
  ToyModel model(kBeamVocabulary, random_table(kBeamVocabulary));
  EXPECT_TRUE(search(model, {}, settings_with(beam_of(3))).empty());
}

}  // namespace
}  // namespace lacuna
