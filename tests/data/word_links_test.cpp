#include "data/word_links.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "data/corpus_reader.h"
#include "small_corpus.h"

namespace lacuna {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(WordLinks, AreParsedFromText) {
  const LinksOfLine links = parse_links("2-1 0-0\t1?2 0-0 3p0", "file:1");
  EXPECT_THAT(links.sure, ElementsAre(WordLink(0, 0), WordLink(2, 1)));
  EXPECT_THAT(links.possible, ElementsAre(WordLink(0, 0), WordLink(1, 2), WordLink(2, 1), WordLink(3, 0)));
  for (const char* wrong : {"0", "0-", "-0", "0-1x", "a-b", "0--1", "9999999-0"})
    EXPECT_THAT([&] { parse_links(wrong, "file:1"); }, ThrowsMessage<LineError>(HasSubstr("file:1: ")));
}

TEST(WordLinks, LinkAllTokensOfTheTwoWords) {
  // Source words of 2, 1 and 1 tokens, target words of 1 and 2; the last link is of a word that was cropped.
  EXPECT_THAT(links_of_tokens(WordLinks{{0, 1}, {2, 0}, {5, 0}}, std::vector<int32_t>{0, 0, 1, 2}, std::vector<int32_t>{0, 1, 1}),
              ElementsAre(WordLink(0, 1), WordLink(0, 2), WordLink(1, 1), WordLink(1, 2), WordLink(3, 0)));
}

struct LinkedCorpus : SmallCorpus {
  CorpusOptions write_linked(const std::string& links, const std::string& src = "w1 w2 w3\nw4\n",
                             const std::string& tgt = "w5 w6\nw7 w8\n") {
    CorpusOptions corpus = write(src, tgt);
    corpus.links = folder.write("links", links);
    return corpus;
  }
  BatchPtr batch_of(const CorpusOptions& corpus) {
    plan.corpora = {open(corpus)};
    plan.weights = {1};
    plan.batch_tokens = 1000;
    plan.vocabularies = vocabularies;
    return Epoch(plan, 0).next();
  }
  BatchPlan plan;
};

/// Returns what is linked in a batch, as words.
std::vector<std::pair<std::string, std::string>> linked_words(const Batch& batch, const Vocabulary& vocabulary) {
  std::vector<std::pair<std::string, std::string>> words;
  for (const auto& [src, tgt] : batch.links)
    words.emplace_back(vocabulary.piece(batch.src.at(static_cast<size_t>(src))), vocabulary.piece(batch.tgt.at(static_cast<size_t>(tgt))));
  return words;
}

TEST(LinkedCorpus, GivesBatchesTheLinksOfItsPairs) {
  LinkedCorpus small;
  const CorpusOptions corpus = small.write_linked("0-1 2?0\n0-1\n");
  const BatchPtr batch = small.batch_of(corpus);
  EXPECT_THAT(linked_words(*batch, *small.vocabularies.src),
              testing::UnorderedElementsAre(std::pair("w1", "w6"), std::pair("w3", "w5"), std::pair("w4", "w8")));
  const auto [first, second] = split_batch(*batch);
  EXPECT_EQ(first->links.size() + second->links.size(), 3U);
  for (const BatchPtr& part : {first, second})
    for (const auto& words : linked_words(*part, *small.vocabularies.src)) EXPECT_TRUE(words.first == "w4" ? words.second == "w8" : true);
  EXPECT_EQ(small.open(corpus)->fingerprint(), small.plan.corpora[0]->fingerprint());
  EXPECT_NE(small.open(small.write_linked("0-1\n0-1\n"))->fingerprint(), small.plan.corpora[0]->fingerprint());
}

TEST(LinkedCorpus, CountsWordsBehindAPrefix) {
  LinkedCorpus small;
  CorpusOptions corpus = small.write_linked("0-1\n\n");
  corpus.src_prefix = "w9 w10";
  EXPECT_THAT(linked_words(*small.batch_of(corpus), *small.vocabularies.src), ElementsAre(std::pair("w1", "w6")));
}

TEST(LinkedCorpus, TakesLinksFromAColumn) {
  LinkedCorpus small;
  CorpusOptions corpus = small.write_tsv("w1 w2\tw3\t0.9\t1-0\n\nw4\tw5\t0.1\t0-0\n");
  corpus.min_score = {3, 0.5};
  corpus.links_column = 4;
  EXPECT_THAT(linked_words(*small.batch_of(corpus), *small.vocabularies.src), ElementsAre(std::pair("w2", "w3")));
}

TEST(LinkedCorpus, NamesALineThatHoldsNoLinks) {
  LinkedCorpus small;
  const auto fails = [&](const std::string& links, const std::string& message) {
    EXPECT_THAT([&] { small.open(small.write_linked(links)); }, ThrowsMessage<DataError>(HasSubstr(message)));
  };
  fails("0-0\n1-1 x\n", "links:2: \"x\" is not a link; expected source-target");
  fails("0-0\n1-1\n", "links:2: link 1-1 is out of range; the sentences have 1 and 2 words, counted from 0");
  fails("0-0\n", "links has 1 line and ");
  fails("0-0\n0-0\n0-0\n", "links has 3 lines and ");
}

TEST(LinkedCorpus, LeavesOutBadLinesOfLinksWithTheirPair) {
  LinkedCorpus small;
  small.options.bad_lines = OnBadLine::kSkip;
  const auto corpus = small.open(small.write_linked("7-7\n0-1\n"));
  ASSERT_EQ(corpus->size(), 1);
  EXPECT_THAT(corpus->links(0), ElementsAre(WordLink(0, 1)));
  EXPECT_EQ(corpus->summary().bad.count(), 1);
}

}  // namespace
}  // namespace lacuna
