#include "data/corpus.h"

#include <gmock/gmock.h>

#include <set>

#include "../base/packed.h"
#include "base/error.h"
#include "data/training_data.h"
#include "small_corpus.h"

namespace lacuna {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Corpus, HoldsIdsThatEndInEos) {
  const SmallCorpus small;
  const auto corpus = small.open("w0 w1\nw2\n", "w3\nw4 nothing\n");
  ASSERT_EQ(corpus->size(), 2);
  EXPECT_THAT(corpus->src(0), ElementsAre(3, 4, kEos));
  EXPECT_THAT(corpus->src(1), ElementsAre(5, kEos));
  EXPECT_THAT(corpus->tgt(1), ElementsAre(7, kUnk, kEos));
}

TEST(Corpus, IsTheSamePlainAndPacked) {
  const SmallCorpus small;
  const std::string src = random_lines(500, 1), tgt = random_lines(500, 2);
  const auto plain = small.open(src, tgt);
  CorpusOptions packed;
  packed.src = small.folder.write("train.src.gz", gzip_of(src));
  packed.tgt = small.folder.write("train.tgt.zst", zstd_of(tgt));
  const auto unpacked = small.open(packed);
  ASSERT_EQ(unpacked->size(), plain->size());
  for (int64_t i = 0; i < plain->size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(unpacked->src(i), plain->src(i)));
    EXPECT_TRUE(std::ranges::equal(unpacked->tgt(i), plain->tgt(i)));
  }
}

TEST(Corpus, IsTheSameOfTwoFilesAndOfTwoColumns) {
  const SmallCorpus small;
  const auto of_files = small.open("w0 w1\n\nw2\nw3\n", "w3\nw1\nw4\n\n");
  const auto of_columns = small.open(small.write_tsv("w0 w1\tw3\n\tw1\nw2\tw4\nw3\t\n"));
  EXPECT_EQ(of_columns->summary().text(), of_files->summary().text());
  ASSERT_EQ(of_columns->size(), 2);
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(std::ranges::equal(of_columns->src(i), of_files->src(i)));
    EXPECT_TRUE(std::ranges::equal(of_columns->tgt(i), of_files->tgt(i)));
  }
}

TEST(Corpus, HasItsPrefixAsATokenOfEachSource) {
  SmallCorpus small;
  small.options.max_length = 2;
  CorpusOptions corpus = small.write("w0\n\nw1 w2\n", "w0\nw1\nw2\n");
  corpus.src_prefix = "w9";
  const auto opened = small.open(corpus);
  ASSERT_EQ(opened->size(), 1);
  EXPECT_THAT(opened->src(0), ElementsAre(12, 3, kEos));
  EXPECT_THAT(opened->tgt(0), ElementsAre(3, kEos));
  EXPECT_EQ(opened->summary().empty, 1);
  EXPECT_EQ(opened->summary().skipped, 1);
}

TEST(Corpus, SkipsAndCountsEmptyLines) {
  const SmallCorpus small;
  const auto corpus = small.open("w0\n\nw1\n  \nw2\n", "w0\nw1\n\nw3\nw2\n");
  EXPECT_EQ(corpus->size(), 2);
  EXPECT_EQ(corpus->summary().lines, 5);
  EXPECT_EQ(corpus->summary().empty, 3);
  EXPECT_THAT(corpus->summary().text(), HasSubstr("3 with an empty side skipped"));
}

TEST(Corpus, SkipsAndCountsLongLines) {
  SmallCorpus small;
  small.options.max_length = 2;
  const auto corpus = small.open("w0 w1\nw0\nw2\n", "w0\nw0 w1 w2\nw2\n");
  EXPECT_EQ(corpus->size(), 2);
  EXPECT_EQ(corpus->summary().skipped, 1);
  EXPECT_THAT(corpus->tgt(1), ElementsAre(5, kEos));
}

TEST(Corpus, CropsAndCountsLongLinesIfAsked) {
  SmallCorpus small;
  small.options.max_length = 2;
  small.options.long_lines = LongLines::kCrop;
  const auto corpus = small.open("w0 w1\nw0\n", "w0\nw0 w1 w2\n");
  EXPECT_EQ(corpus->summary().cropped, 1);
  EXPECT_THAT(corpus->tgt(1), ElementsAre(3, 4, kEos));
}

TEST(Corpus, SkipsAndCountsPairsOfTooDifferentLengthsIfAsked) {
  SmallCorpus small;
  const std::string src = "w0 w1\nw0\nw2 w3 w4 w5 w6\nw2 w3 w4 w5\n", tgt = "w0\nw0 w1 w2\nw2 w3\nw2 w3\n";
  EXPECT_EQ(small.open(src, tgt)->size(), 4);
  small.options.max_length_ratio = 2;
  const auto corpus = small.open(src, tgt);
  EXPECT_EQ(corpus->size(), 2);
  EXPECT_EQ(corpus->summary().uneven, 2);
  EXPECT_THAT(corpus->summary().text(), HasSubstr("2 of too different lengths, skipped"));
  EXPECT_THAT(corpus->src(1), ElementsAre(5, 6, 7, 8, kEos));
  small.options.max_length_ratio = 2.5;
  EXPECT_EQ(small.open(src, tgt)->size(), 3);
}

TEST(Corpus, RefusesLongLinesIfAskedAndLeavesNoCache) {
  SmallCorpus small;
  small.options.max_length = 2;
  small.options.long_lines = LongLines::kError;
  EXPECT_THAT(message_of<DataError>([&] { small.open("w0\nw0\n", "w0\nw0 w1 w2\n"); }),
              AllOf(HasSubstr("train.src:2"), HasSubstr("3 tokens"), HasSubstr("data.max_length is 2"), HasSubstr("data.long")));
  EXPECT_EQ(small.num_caches(), 0u);
}

TEST(Corpus, HandlesAndCountsCarriageReturns) {
  const SmallCorpus small;
  const auto corpus = small.open("w0\r\nw1\r\n", "w0\nw1\r\n");
  EXPECT_THAT(corpus->src(0), ElementsAre(3, kEos));
  EXPECT_EQ(corpus->summary().carriage_returns, 3);
}

TEST(Corpus, TakesOtherLineEndsForTextAndMentionsThem) {
  const SmallCorpus small;
  const auto corpus = small.open("w0\u2028w1\nw1\n", "w0\nw1\n");
  EXPECT_EQ(corpus->size(), 2);
  EXPECT_EQ(corpus->summary().other_line_ends, 1);
  EXPECT_THAT(corpus->summary().text(), HasSubstr("1 line with U+2028"));
}

TEST(Corpus, OfDifferentLineCountsIsAnErrorWithBothCounts) {
  const SmallCorpus small;
  EXPECT_THAT(message_of<DataError>([&] { small.open("w0\nw1\nw2\nw3\n", "w0\n"); }),
              AllOf(HasSubstr("train.src has 4 lines"), HasSubstr("train.tgt has 1;")));
}

TEST(Corpus, OfDifferentLineCountsNamesTheFirstByteThatOthersTakeForALineEnd) {
  const SmallCorpus small;
  EXPECT_THAT(message_of<DataError>([&] { small.open("w0\nw1 \u2028w2\nw3\n", "w0\nw1\nw2\nw3\n"); }),
              AllOf(HasSubstr("train.src:2, byte 4 is U+2028")));
  EXPECT_THAT(message_of<DataError>([&] { small.open("w0\nw1\nw2\n", "w0\rw1\nw2\n"); }),
              HasSubstr("train.tgt:1, byte 3 is a carriage return"));
}

TEST(Corpus, RefusesNulBytesAndInvalidUtf8WithTheirPlace) {
  const SmallCorpus small;
  EXPECT_THAT(message_of<DataError>([&] { small.open(std::string("w0\nw\0001\n", 7), "w0\nw1\n"); }),
              AllOf(HasSubstr("train.src:2"), HasSubstr("byte 2 is NUL")));
  EXPECT_THAT(message_of<DataError>([&] { small.open("w0\nw1\n", "w0\nw1 \xE4\n"); }),
              AllOf(HasSubstr("train.tgt:2"), HasSubstr("byte 4 is not UTF-8")));
}

TEST(Corpus, RefusesFilesThatAreMissingEmptyOrFolders) {
  const SmallCorpus small;
  CorpusOptions corpus = small.write("w0\n", "");
  EXPECT_THAT(message_of<DataError>([&] { small.open(corpus); }), AllOf(HasSubstr("train.tgt"), HasSubstr("is empty")));
  corpus.tgt = small.folder / "none";
  EXPECT_THAT(message_of<DataError>([&] { small.open(corpus); }), HasSubstr("no such file"));
  corpus.tgt = small.folder.path();
  EXPECT_THAT(message_of<DataError>([&] { small.open(corpus); }), HasSubstr("is a folder"));
}

TEST(Corpus, OfWhichNothingIsLeftIsAnError) {
  const SmallCorpus small;
  EXPECT_THAT(message_of<DataError>([&] { small.open("w0\n\n", "\nw1\n"); }), HasSubstr("no sentence pair is left"));
}

TEST(Corpus, CountsTokensUnknownOnesAndLengths) {
  const SmallCorpus small;
  const auto corpus = small.open("w0 what w1\n", "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 w13 w14 w15\n");
  const DataSummary& summary = corpus->summary();
  EXPECT_EQ(summary.src_tokens, 4);
  EXPECT_EQ(summary.tgt_tokens, 17);
  EXPECT_EQ(summary.src_unk, 1);
  EXPECT_DOUBLE_EQ(summary.src_unk_rate(), 0.25);
  EXPECT_EQ(summary.src_lengths[0], 1);
  EXPECT_EQ(summary.tgt_lengths[1], 1);
}

TEST(TrainingData, OpensSeveralCorporaTogether) {
  SmallCorpus small;
  small.options.vocab = small.folder.write("words", "w0\nw1\n");
  small.options.train = {small.write("w0\n", "w1\n", "one"), small.write("w0\nw1\n", "w1\nw0\n", "two")};
  small.options.train[1].weight = 3;
  const TrainingData data = open_training_data(small.options, small.folder / "run", 100, 1);
  EXPECT_EQ(data.summary.kept, 3);
  EXPECT_THAT(data.plan.weights, ElementsAre(1, 3));
  EXPECT_TRUE(data.vocabularies.shared());
}

TEST(TrainingData, OfAnEpochAreCountedByTheWeightsOfTheCorpora) {
  SmallCorpus small;
  small.options.vocab = small.folder.write("words", "w0\nw1\n");
  small.options.train = {small.write("w0\n", "w1 w0\n", "one"), small.write("w0\nw1\n", "w1 w1\nw0 w0\n", "two")};
  small.options.train[1].weight = 3;
  BatchPlan plan = open_training_data(small.options, small.folder / "run", 100, 1).plan;
  EXPECT_EQ(epoch_size(plan).pairs, 1 + 3 * 2);
  EXPECT_EQ(epoch_size(plan).src_tokens, 2 + 3 * 4);
  EXPECT_EQ(epoch_size(plan).tgt_tokens, 3 + 3 * 6);
  plan.weights[1] = 0.5;
  EXPECT_EQ(epoch_size(plan).pairs, 1 + 1);
  EXPECT_EQ(epoch_size(plan).src_tokens, 2 + 2);
  EXPECT_EQ(epoch_size(plan).tgt_tokens, 3 + 3);
}

TEST(TrainingData, HasAFingerprintOfTheTextAlone) {
  SmallCorpus small;
  small.options.vocab = small.folder.write("words", "w0\nw1\n");
  small.options.train = {small.write("w0\n", "w1\n")};
  const auto fingerprint = [&] { return open_training_data(small.options, small.folder / "run", 100, 1).fingerprint; };
  const std::string before = fingerprint();
  small.options.train = {small.write("w0\n", "w1\n", "renamed")};
  EXPECT_EQ(fingerprint(), before);
  small.options.train = {small.write("w1\n", "w1\n")};
  EXPECT_NE(fingerprint(), before);
}

TEST(TrainingData, HasAnotherFingerprintForOtherColumnsOrAnotherPrefix) {
  SmallCorpus small;
  small.options.vocab = small.folder.write("words", "w0\nw1\n");
  CorpusOptions files = small.write("w0\n", "w1\n"), columns = small.write_tsv("w0\tw1\tw1\n");
  const auto fingerprint_of = [&](const CorpusOptions& corpus) {
    small.options.train = {corpus};
    return open_training_data(small.options, small.folder / "run", 100, 1).fingerprint;
  };
  std::set<std::string> fingerprints = {fingerprint_of(files), fingerprint_of(columns)};
  columns.columns = {1, 3};  // which hold the same
  fingerprints.insert(fingerprint_of(columns));
  for (const char* const prefix : {"w1", "w0"}) {
    files.src_prefix = columns.src_prefix = prefix;
    fingerprints.insert(fingerprint_of(files));
    fingerprints.insert(fingerprint_of(columns));
  }
  EXPECT_EQ(fingerprints.size(), 7u);
}

TEST(TrainingData, WithoutCorporaIsAnError) {
  const SmallCorpus small;
  EXPECT_THAT(message_of<ConfigError>([&] { open_training_data(small.options, small.folder / "run", 100, 1); }), HasSubstr("data.train"));
}

}  // namespace
}  // namespace lacuna
