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
  CorpusOptions corpus = small.write_tsv("0.9\ta house\tein Haus\thttp\n0.1\t\tja\t\n");
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
}

TEST(CorpusReader, TakesABlankRowForAPairOfEmptySentencesAsTwoFilesHaveThem) {
  const SmallCorpus small;
  EXPECT_THAT(pairs_of(small.write_tsv("a\tb\n\n \nc\td\n")),
              ElementsAre(testing::Pair("a", "b"), testing::Pair("", ""), testing::Pair("", ""), testing::Pair("c", "d")));
}

TEST(CorpusReader, RefusesARowWithAnotherNumberOfColumnsThanMost) {
  const SmallCorpus small;
  EXPECT_THAT(message_of<LineError>([&] { count_pairs(small.write_tsv("a,\tb\tc\nd\te\nf\tg\n")); }),
              HasSubstr("train.tsv:1: the line has 3 columns, and most have 2; expected as many in all"));
  CorpusOptions three = small.write_tsv("a\tb\tc\nd\te\tf\ng\th\n");
  EXPECT_THAT(message_of<LineError>([&] { count_pairs(three); }), HasSubstr("train.tsv:3: the line has 2 columns, and most have 3"));
}

/// A corpus whose lines 2 to 5 are bad, each in its own way.
CorpusOptions with_bad_lines(const SmallCorpus& small, bool in_columns) {
  const std::string long_line(size_t{2} << 20, 'x');
  const std::string src[] = {"a", "\xFF", std::string("a\0", 2), long_line, "good", "last"}, tgt[] = {"b", "b", "b", "b", "\xFE", "end"};
  std::string src_lines, tgt_lines, rows;
  for (size_t i = 0; i < std::size(src); ++i) {
    src_lines += src[i] + "\n";
    tgt_lines += tgt[i] + "\n";
    rows += src[i] + "\t" + tgt[i] + "\n";
  }
  return in_columns ? small.write_tsv(rows) : small.write(src_lines, tgt_lines);
}

TEST(CorpusReader, GoesOnBehindABadLineInStepOnBothSides) {
  const SmallCorpus small;
  for (const bool in_columns : {false, true}) {
    std::vector<std::string> errors;
    CorpusReader reader(with_bad_lines(small, in_columns), [&](const LineError& error, std::string_view line) {
      errors.push_back(error.kind());
      EXPECT_FALSE(line.empty());
    });
    std::string src, tgt;
    ASSERT_TRUE(reader.next(src, tgt));
    ASSERT_TRUE(reader.next(src, tgt));
    EXPECT_EQ(src + tgt, "lastend");
    EXPECT_EQ(reader.line_number(), 6);
    EXPECT_FALSE(reader.next(src, tgt));
    EXPECT_THAT(errors, ElementsAre("not UTF-8", "with NUL bytes", "longer than 1 MiB", "not UTF-8"));
  }
}

TEST(CorpusReader, ThrowsAtABadLineAndGoesOnBehindIt) {
  const SmallCorpus small;
  CorpusReader reader(with_bad_lines(small, false));
  std::string src, tgt;
  EXPECT_TRUE(reader.next(src, tgt));
  for (int i = 2; i <= 5; ++i) EXPECT_THAT(message_of<LineError>([&] { reader.next(src, tgt); }), HasSubstr(fmt::format(":{}: ", i)));
  EXPECT_TRUE(reader.next(src, tgt));
  EXPECT_EQ(src + tgt, "lastend");
}

TEST(CorpusReader, NamesAllKindsOfBadLinesAtOnce) {
  const SmallCorpus small;
  const CorpusOptions corpus = with_bad_lines(small, false);
  EXPECT_THAT(
      message_of<DataError>([&] { count_pairs(corpus); }),
      AllOf(HasSubstr("4 of 6 lines cannot be taken: 1 longer than 1 MiB (the first: "), HasSubstr("train.src:4: the line is longer"),
            HasSubstr("2 not UTF-8 (the first: "), HasSubstr("train.src:2: byte 1 is not UTF-8"),
            HasSubstr("1 with NUL bytes (the first: "), HasSubstr("train.src:3: byte 2 is NUL")));
  EXPECT_THAT(message_of<DataError>([&] { count_pairs(corpus, OnBadLine::kStop, kSkipInTraining); }), HasSubstr("data.bad_lines: skip"));
  EXPECT_EQ(count_pairs(corpus, OnBadLine::kSkip), 6);
}

TEST(BadLines, RejectsAreLinesOfUtf8) {
  EXPECT_EQ(reject_line({"kind", "a:1: why"}, "gr\xFC\xDF \x1B[31m\ttab \\ gr\u00FC\u00DF"),
            "a:1: why\tgr\\xfc\\xdf \\x1b[31m\\x09tab \\x5c gr\u00FC\u00DF\n");
  EXPECT_EQ(reject_line({"kind", "why"}, std::string(5000, 'a')), "why\t" + std::string(1000, 'a') + "...\n");
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
