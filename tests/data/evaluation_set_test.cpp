#include "data/evaluation_set.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "small_corpus.h"

namespace lacuna {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

EvaluationSet load(const SmallCorpus& small, const std::string& src, const std::string& tgt, int64_t batch_tokens = 1000) {
  return load_evaluation_set(small.write(src, tgt, "valid"), small.options, small.vocabularies, batch_tokens);
}

TEST(EvaluationSet, KeepsEveryLineAsItIs) {
  const SmallCorpus small;
  const EvaluationSet set = load(small, "w0  w1\n\nw2\r\n", "w0\nw1\n\n");
  EXPECT_THAT(set.src_lines, ElementsAre("w0  w1", "", "w2"));
  EXPECT_THAT(set.tgt_lines, ElementsAre("w0", "w1", ""));
}

TEST(EvaluationSet, MakesBatchesOfWhatHasTwoSidesInOrder) {
  const SmallCorpus small;
  const EvaluationSet set = load(small, "w0 w1\n\nw2\nw3\n", "w0\nw1\nw4\nw5\n", 6);
  ASSERT_EQ(set.batches.size(), 2u);
  EXPECT_THAT(set.batches[0]->src, ElementsAre(3, 4, kEos, 5, kEos));
  EXPECT_THAT(set.batches[0]->src_shape->ids(), ElementsAre(0, 2));
  EXPECT_THAT(set.batches[1]->tgt, ElementsAre(8, kEos));
}

TEST(EvaluationSet, CropsAndCountsLongLinesForTheLossOnly) {
  SmallCorpus small;
  small.options.max_length = 2;
  const EvaluationSet set = load(small, "w0 w1 w2\nw0\n", "w0\nw0\n");
  EXPECT_EQ(set.cropped, 1);
  EXPECT_EQ(set.src_lines[0], "w0 w1 w2");
  EXPECT_THAT(set.batches[0]->src, ElementsAre(3, 4, kEos, 3, kEos));
}

TEST(EvaluationSet, OfColumnsIsThatOfFiles) {
  const SmallCorpus small;
  const CorpusOptions corpus = small.write_tsv("w0\tw1 w2\n\tw3\nw4\t\n", "valid");
  const EvaluationSet set = load_evaluation_set(corpus, small.options, small.vocabularies, 1000);
  EXPECT_EQ(set.name, "valid");
  EXPECT_THAT(set.src_lines, ElementsAre("w0", "", "w4"));
  EXPECT_THAT(set.tgt_lines, ElementsAre("w1 w2", "w3", ""));
  ASSERT_EQ(set.batches.size(), 1u);
  EXPECT_THAT(set.batches[0]->tgt, ElementsAre(4, 5, kEos));
}

TEST(EvaluationSet, IsTranslatedAndScoredWithItsPrefix) {
  const SmallCorpus small;
  CorpusOptions corpus = small.write("w0\n\n", "w1\nw2\n", "valid");
  corpus.src_prefix = "w9";
  const EvaluationSet set = load_evaluation_set(corpus, small.options, small.vocabularies, 1000);
  EXPECT_THAT(set.src_lines, ElementsAre("w9 w0", ""));
  EXPECT_THAT(set.tgt_lines, ElementsAre("w1", "w2"));
  EXPECT_THAT(set.batches[0]->src, ElementsAre(12, 3, kEos));
}

TEST(EvaluationSet, IsNamedByItsFile) {
  CorpusOptions corpus;
  corpus.src = "data/newstest2014.de.gz";
  EXPECT_EQ(name_of(corpus), "newstest2014");
  corpus.src = "data/newstest2014.de.zst";
  EXPECT_EQ(name_of(corpus), "newstest2014");
  corpus.src = "valid";
  EXPECT_EQ(name_of(corpus), "valid");
  corpus.src = "";
  corpus.tsv = "data/dev.de-en.tsv.gz";
  EXPECT_EQ(name_of(corpus), "dev.de-en");
  corpus.name = "news";
  EXPECT_EQ(name_of(corpus), "news");
}

TEST(EvaluationSet, WithoutAPairOfSentencesIsAnError) {
  const SmallCorpus small;
  EXPECT_THAT(message_of<DataError>([&] { load(small, "w0\n\n", "\nw1\n"); }),
              AllOf(HasSubstr("valid.src and "), HasSubstr("valid.tgt: every pair has an empty side; expected sentences")));
}

TEST(EvaluationSet, OfDifferentLineCountsIsAnError) {
  const SmallCorpus small;
  EXPECT_THAT(message_of<DataError>([&] { load(small, "w0\nw1\n", "w0\n"); }), HasSubstr("has 2 lines"));
}

}  // namespace
}  // namespace lacuna
