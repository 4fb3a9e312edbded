#include "data/corpus_reader.h"

#include <gmock/gmock.h>

#include <vector>

#include "../base/packed.h"
#include "base/error.h"
#include "small_corpus.h"

namespace lacuna {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::pair<std::string, std::string>> pairs_of(const CorpusOptions& corpus) {
  std::vector<std::pair<std::string, std::string>> pairs;
  std::string src, tgt;
  for (CorpusReader reader(corpus); reader.next(src, tgt);) pairs.emplace_back(src, tgt);
  return pairs;
}

TEST(CorpusReader, ReadsTwoColumnsOfOneFile) {
  const SmallCorpus small;
  const CorpusOptions corpus = small.write_tsv(
      "\xEF\xBB\xBF"
      "ein Haus\ta house\r\n\t\nja\tyes");
  EXPECT_THAT(pairs_of(corpus), ElementsAre(testing::Pair("ein Haus", "a house"), testing::Pair("", ""), testing::Pair("ja", "yes")));
  EXPECT_EQ(count_pairs(corpus), 3);
}

TEST(CorpusReader, ReadsTheColumnsThatAreAskedFor) {
  const SmallCorpus small;
  CorpusOptions corpus = small.write_tsv("0.9\ta house\tein Haus\thttp\n0.1\t\tja\n");
  corpus.columns = {3, 2};
  EXPECT_THAT(pairs_of(corpus), ElementsAre(testing::Pair("ein Haus", "a house"), testing::Pair("ja", "")));
  corpus.columns = {2, 2};
  EXPECT_THAT(pairs_of(corpus), ElementsAre(testing::Pair("a house", "a house"), testing::Pair("", "")));
}

TEST(CorpusReader, ReadsColumnsOfAPackedFile) {
  const SmallCorpus small;
  EXPECT_THAT(pairs_of({.tsv = small.folder.write("train.tsv.gz", gzip_of("a\tb\n"))}), ElementsAre(testing::Pair("a", "b")));
}

TEST(CorpusReader, RefusesALineThatLacksAColumnWithItsPlace) {
  const SmallCorpus small;
  CorpusOptions corpus = small.write_tsv("a\tb\na b\n");
  EXPECT_THAT(message_of<DataError>([&] { count_pairs(corpus); }),
              AllOf(HasSubstr("train.tsv:2: the line has 1 column; expected the source in column 1 and the target in column 2"),
                    HasSubstr("Mend the line or remove it")));
  corpus.columns = {4, 1};
  EXPECT_THAT(message_of<DataError>([&] { count_pairs(corpus); }),
              HasSubstr("train.tsv:1: the line has 2 columns; expected the source in column 4 and the target in column 1"));
  EXPECT_THAT(message_of<DataError>([&] { count_pairs(small.write_tsv("a\tb\n\n")); }), HasSubstr("train.tsv:2: the line has 1 column;"));
}

TEST(CorpusReader, RefusesARowThatIsNoCleanText) {
  const SmallCorpus small;
  EXPECT_THAT(message_of<DataError>([&] { count_pairs(small.write_tsv("a\tb\na\t\xE4\n")); }),
              AllOf(HasSubstr("train.tsv:2"), HasSubstr("byte 3 is not UTF-8")));
}

TEST(CorpusReader, CountsOddBytesOfBothColumns) {
  const SmallCorpus small;
  CorpusReader reader(small.write_tsv("a\u2028b\tc\rd\r\ne\tf\n"));
  std::string src, tgt;
  while (reader.next(src, tgt)) {
  }
  EXPECT_EQ(reader.carriage_returns(), 1);
  EXPECT_EQ(reader.other_line_ends(), 2);
}

TEST(CorpusReader, PutsThePrefixBeforeSourceLinesThatAreNotBlank) {
  const SmallCorpus small;
  CorpusOptions files = small.write("a b\n\n \u3000\nc\n", "d\ne\nf\n\n"), columns = small.write_tsv("a b\td\n\te\n");
  files.src_prefix = columns.src_prefix = "<bt>";
  EXPECT_THAT(pairs_of(files), ElementsAre(testing::Pair("<bt> a b", "d"), testing::Pair("", "e"), testing::Pair(" \u3000", "f"),
                                           testing::Pair("<bt> c", "")));
  EXPECT_THAT(pairs_of(columns), ElementsAre(testing::Pair("<bt> a b", "d"), testing::Pair("", "e")));
}

TEST(CorpusReader, OfAMissingFileIsAnError) {
  EXPECT_THAT(message_of<DataError>([] { CorpusReader(CorpusOptions{.tsv = "nowhere.tsv"}); }),
              AllOf(HasSubstr("nowhere.tsv: there is no such file"), HasSubstr("text of both sides")));
}

}  // namespace
}  // namespace lacuna
