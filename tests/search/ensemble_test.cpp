#include "search/ensemble.h"

#include <gmock/gmock.h>

#include "../base/scratch_folder.h"
#include "base/error.h"
#include "toy_model.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kEnsembleVocabulary = 7;

StepModelPtr toy(ToyTable table, int64_t max_positions = 0) {
  return std::make_shared<ToyModel>(kEnsembleVocabulary, std::move(table), max_positions);
}

TEST(Ensemble, OfOneIsThatModel) {
  const ToyTable table = random_table(kEnsembleVocabulary);
  ToyModel single(kEnsembleVocabulary, table);
  Ensemble ensemble({toy(table)});
  const auto inputs = inputs_of({{5, kEos}, {6, 3, 4, kEos}});
  const SearchResults expected = search(single, inputs, settings_with(beam_of(4, 4)));
  const SearchResults found = search(ensemble, inputs, settings_with(beam_of(4, 4)));
  for (size_t s = 0; s < inputs.size(); ++s)
    for (size_t n = 0; n < 4; ++n) {
      EXPECT_EQ(found[s][n].tokens, expected[s][n].tokens);
      EXPECT_NEAR(found[s][n].score, expected[s][n].score, 1e-5);
    }
}

TEST(Ensemble, TakesTheMeanOfProbabilities) {
  const auto log = [](std::vector<float> probabilities) {
    for (float& p : probabilities) p = std::log(p);
    return probabilities;
  };
  Ensemble ensemble({toy(constant_table(log({0.1F, 0.1F, 0.2F, 0.3F, 0.1F, 0.1F, 0.1F}))),
                     toy(constant_table(log({0.1F, 0.1F, 0.4F, 0.1F, 0.1F, 0.1F, 0.1F})))});
  const auto cache = ensemble.start({{5, kEos}});
  const std::vector<float> found = ensemble.step({kBos}, *cache).of({kEos});
  EXPECT_NEAR(std::exp(found[0]), 0.3, 1e-6);
}

TEST(Ensemble, MembersFollowEachOther) {
  Ensemble ensemble({toy(random_table(kEnsembleVocabulary, 1)), toy(random_table(kEnsembleVocabulary, 2))});
  const auto inputs = inputs_of({{5, kEos}, {6, 3, 4, kEos}, {3, kEos}});
  expect_no_trace_of_the_batch(ensemble, inputs, settings_with(beam_of(3)));
}

TEST(Ensemble, AlignmentIsTheMean) {
  Ensemble ensemble({toy(says({4, 5}, kEnsembleVocabulary)), toy(says({4, 5}, kEnsembleVocabulary))});
  SearchSettings settings = settings_with(beam_of(1));
  settings.alignment_layer = 0;
  const Hypothesis found = search(ensemble, inputs_of({{3, 3, kEos}}), settings).front().front();
  EXPECT_EQ(*found.alignment[0], (std::vector<float>{1, 0, 0}));
}

TEST(Ensemble, ReadsNoMoreThanItsShortestMember) {
  EXPECT_EQ(Ensemble({toy(says({}, kEnsembleVocabulary)), toy(says({}, kEnsembleVocabulary), 40), toy(says({}, kEnsembleVocabulary), 30)})
                .max_positions(),
            30);
}

TEST(Ensemble, OfDifferentVocabulariesIsAnErrorThatNamesBoth) {
  const VocabularyPtr one = token_list_from_bytes("a\nb\n", "one"), other = token_list_from_bytes("a\nc\nd\n", "other");
  EXPECT_NO_THROW(check_same_vocabularies({{one, one}, {one, one}}, {"runs/a", "runs/b"}));
  EXPECT_THAT(message_of<DataError>([&] {
                check_same_vocabularies({{one, one}, {one, other}}, {"runs/a", "runs/b"});
              }),
              AllOf(HasSubstr("runs/a"), HasSubstr("runs/b"), HasSubstr("target")));
}

}  // namespace
}  // namespace lacuna
