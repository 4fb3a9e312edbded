#include "search/search_queue.h"

#include "toy_model.h"

namespace lacuna {
namespace {

using Places = std::vector<size_t>;

std::vector<SearchInput> of_lengths(const std::vector<size_t>& lengths) {
  std::vector<Tokens> sources;
  for (const size_t length : lengths) sources.emplace_back(length, kEos);
  return inputs_of(sources);
}

TEST(SearchQueue, GivesAsManyAsThereIsRoomFor) {
  FixedSearchQueue queue(of_lengths({4, 4, 3, 2, 1}), 8);
  EXPECT_EQ(queue.take(0), (Places{0, 1}));
  EXPECT_EQ(queue.take(4), (Places{2}));  // a further one would be 9
  EXPECT_EQ(queue.take(0), (Places{3, 4}));
  EXPECT_EQ(queue.take(0), Places());
}

TEST(SearchQueue, GivesNothingWhileMostOfTheBatchIsAtWork) {
  FixedSearchQueue queue(of_lengths({1, 1}), 8);
  EXPECT_EQ(queue.take(5), Places());
  EXPECT_EQ(queue.take(4), (Places{0, 1}));
}

TEST(SearchQueue, GivesASentenceThatFillsMoreThanABatchByItself) {
  FixedSearchQueue queue(of_lengths({9, 1}), 8);
  EXPECT_EQ(queue.take(1), Places());
  EXPECT_EQ(queue.take(0), (Places{0}));
  EXPECT_EQ(queue.take(0), (Places{1}));
}

TEST(SearchQueue, TellsOfEachSentenceThatIsFinished) {
  int finished = 0;
  FixedSearchQueue queue(of_lengths({1, 1}), 8, [&] { ++finished; });
  queue.take(0);
  queue.finish(1, {});
  EXPECT_EQ(finished, 1);
  queue.finish(0, {});
  EXPECT_EQ(finished, 2);
}

TEST(BeamSearch, TakesSentencesInAsOthersAreDone) {
  const ToyTable repeats = [](const Tokens& src, const Tokens& tokens) { return says(Tokens(src.size() - 1, 5), 7)(src, tokens); };
  ToyModel model(7, repeats);
  const SearchResults found = search_with_room(6, model, of_lengths({3, 2, 3}), settings_with(beam_of(1)));
  EXPECT_EQ(found[2].front().tokens, (Tokens{5, 5, kEos}));
  EXPECT_EQ(model.steps, 2 + 3) << "the last begins when the second is done";
  EXPECT_EQ(model.rows, 3 + 2 + 3);
}

}  // namespace
}  // namespace lacuna
