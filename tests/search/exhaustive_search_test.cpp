#include <algorithm>

#include "search/length_penalty.h"
#include "toy_model.h"

namespace lacuna {
namespace {

constexpr int64_t kExhaustiveVocabulary = 6;  // unk, bos and eos, and three words
constexpr int64_t kLongest = 5;

struct Sentence {
  Tokens tokens;
  double log_prob = 0;
  double score = 0;
};

/// The whole search space: every sentence of up to kLongest tokens with its score.
void write_out(const ToyTable& table, const Tokens& src, const TranslateOptions& options, Sentence so_far, std::vector<Sentence>& all) {
  const std::vector<double> log_probs = log_softmax(table(src, so_far.tokens));
  const auto length = static_cast<int64_t>(so_far.tokens.size()) + 1;
  for (TokenId token = kEos; token < kExhaustiveVocabulary; ++token) {
    if (length == kLongest && token != kEos) continue;
    Sentence next = so_far;
    next.tokens.push_back(token);
    next.log_prob += log_probs[static_cast<size_t>(token)];
    next.score = next.log_prob / length_penalty(options, length);
    if (token == kEos)
      all.push_back(next);
    else
      write_out(table, src, options, next, all);
  }
}

std::vector<Sentence> all_sentences(const ToyTable& table, const Tokens& src, const TranslateOptions& options) {
  std::vector<Sentence> all;
  write_out(table, src, options, {}, all);
  std::sort(all.begin(), all.end(), [](const Sentence& a, const Sentence& b) { return a.score > b.score; });
  return all;
}

struct Case {
  const char* name;
  LengthPenalty type;
  double exponent;
};

class WideBeam : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(, WideBeam,
                         testing::Values(Case{"Pow1", LengthPenalty::kPow, 1}, Case{"PowHalf", LengthPenalty::kPow, 0.5},
                                         Case{"Gnmt", LengthPenalty::kGnmt, 0.6}, Case{"None", LengthPenalty::kNone, 1}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(WideBeam, EqualsExhaustiveSearch) {
  TranslateOptions options = beam_of(121, 20);  // 1 + 3 + 9 + 27 + 81 sentences
  options.max_length = kLongest;
  options.length_penalty_type = GetParam().type;
  options.length_penalty = GetParam().exponent;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const ToyTable table = random_table(kExhaustiveVocabulary, seed);
    ToyModel model(kExhaustiveVocabulary, table);
    const Tokens src = {4, kEos};
    const std::vector<Sentence> expected = all_sentences(table, src, options);
    const std::vector<Hypothesis> found = search(model, inputs_of({src}), settings_with(options)).front();
    ASSERT_EQ(found.size(), 20u);
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].tokens, expected[i].tokens) << "seed " << seed << ", rank " << i;
      EXPECT_NEAR(found[i].score, expected[i].score, 1e-5);
    }
  }
}

TEST(NarrowBeam, NeverBeatsExhaustiveSearch) {
  TranslateOptions options = beam_of(2);
  options.max_length = kLongest;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const ToyTable table = random_table(kExhaustiveVocabulary, seed);
    ToyModel model(kExhaustiveVocabulary, table);
    const double best = all_sentences(table, {4, kEos}, options).front().score;
    EXPECT_LE(search(model, inputs_of({{4, kEos}}), settings_with(options)).front().front().score, best + 1e-5);
  }
}

}  // namespace
}  // namespace lacuna
