#include <gmock/gmock.h>

#include <limits>
#include <map>
#include <set>

#include "../text/sample_text.h"
#include "base/error.h"
#include "data/batch_maker.h"
#include "small_corpus.h"
#include "text/spm_trainer.h"

namespace lacuna {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using BatchPtr = std::shared_ptr<const Batch>;

struct SmallPlan : SmallCorpus {
  BatchPlan plan;

  explicit SmallPlan(int lines = 200) {
    plan.batch_tokens = 60;
    plan.max_length = options.max_length;
    add(lines, 1);
  }
  void add(int lines, double weight) {
    const std::string name = "corpus" + std::to_string(plan.corpora.size());
    plan.corpora.push_back(open(random_lines(lines, 2 * plan.corpora.size()), random_lines(lines, 2 * plan.corpora.size() + 1), name));
    plan.weights.push_back(weight);
  }
};

/// The batches of the next epoch, from wherever the stream stands.
std::vector<BatchPtr> rest_of_epoch(BatchStream& stream) {
  std::vector<BatchPtr> batches;
  do {
    batches.push_back(stream.next());
  } while (!stream.at_epoch_end());
  return batches;
}

using Pair = std::pair<std::vector<TokenId>, std::vector<TokenId>>;

TEST(BatchesOfEpoch, AreThoseThatItHas) {
  SmallPlan small;
  small.add(50, 2.5);
  EXPECT_EQ(batches_of_epoch(small.plan), static_cast<double>(rest_of_epoch(*make_batch_stream(small.plan)).size()));
}

/// How often each sentence pair is there, by its number among those of all corpora.
std::map<int64_t, int> draws_of(const std::vector<BatchPtr>& batches, const BatchPlan& plan) {
  const auto ids_of = [](std::span<const TokenId> ids) { return std::vector<TokenId>(ids.begin(), ids.end()); };
  std::map<Pair, int64_t> numbers;
  for (const auto& corpus : plan.corpora)
    for (int64_t i = 0; i < corpus->size(); ++i) numbers.emplace(Pair(ids_of(corpus->src(i)), ids_of(corpus->tgt(i))), std::ssize(numbers));
  std::map<int64_t, int> draws;
  const auto part = [](const std::vector<TokenId>& ids, const RaggedShape& shape, int64_t b) {
    const auto begin = ids.begin() + shape.begin(b);
    return std::vector<TokenId>(begin, begin + shape.length(b));
  };
  for (const BatchPtr& batch : batches)
    for (int64_t b = 0; b < batch->src_shape->num_sentences(); ++b)
      ++draws[numbers.at({part(batch->src, *batch->src_shape, b), part(batch->tgt, *batch->tgt_shape, b)})];
  return draws;
}

TEST(BatchStream, BringsEverySentenceOnceAnEpoch) {
  const SmallPlan small;
  const auto stream = make_batch_stream(small.plan);
  for (int epoch = 0; epoch < 3; ++epoch) {
    const auto draws = draws_of(rest_of_epoch(*stream), small.plan);
    EXPECT_EQ(draws.size(), 200u);
    for (const auto& [id, count] : draws) EXPECT_EQ(count, 1);
    EXPECT_EQ(stream->position(), (DataPosition{epoch + 1, 0}));
  }
}

TEST(BatchStream, BringsTheTokensOfTheCorpus) {
  const SmallPlan small;
  const auto stream = make_batch_stream(small.plan);
  for (const BatchPtr& batch : rest_of_epoch(*stream)) {
    ASSERT_EQ(batch->src_shape->ids(), batch->tgt_shape->ids());
    for (int64_t b = 0; b < batch->src_shape->num_sentences(); ++b) {
      const auto src = small.plan.corpora[0]->src(batch->src_shape->id(b)), tgt = small.plan.corpora[0]->tgt(batch->src_shape->id(b));
      ASSERT_TRUE(std::equal(src.begin(), src.end(), batch->src.begin() + batch->src_shape->begin(b)));
      ASSERT_TRUE(std::equal(tgt.begin(), tgt.end(), batch->tgt.begin() + batch->tgt_shape->begin(b)));
    }
  }
}

TEST(BatchStream, BoundsSourceAndTargetTokensAndWastesLittle) {
  const SmallPlan small;
  const auto stream = make_batch_stream(small.plan);
  const std::vector<BatchPtr> batches = rest_of_epoch(*stream);
  int64_t tokens = 0;
  for (const BatchPtr& batch : batches) {
    EXPECT_LE(batch->src_tokens(), 60);
    EXPECT_LE(batch->tgt_tokens(), 60);
    tokens += std::max(batch->src_tokens(), batch->tgt_tokens());
  }
  EXPECT_GT(static_cast<double>(tokens) / static_cast<double>(60 * batches.size()), 0.85);
}

TEST(BatchStream, GivesALongerPairABatchOfItsOwn) {
  SmallPlan small;
  small.plan.batch_tokens = 8;
  const auto stream = make_batch_stream(small.plan);
  int alone = 0;
  for (const BatchPtr& batch : rest_of_epoch(*stream)) {
    if (std::max(batch->src_tokens(), batch->tgt_tokens()) <= 8) continue;
    EXPECT_EQ(batch->src_shape->num_sentences(), 1);
    ++alone;
  }
  EXPECT_GT(alone, 0);
}

TEST(BatchStream, IsTheSameTwice) {
  const SmallPlan small;
  const auto one = make_batch_stream(small.plan), two = make_batch_stream(small.plan);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(*one->next() == *two->next());
}

TEST(BatchStream, IsInAnotherOrderForEachEpochAndSeed) {
  SmallPlan small;
  const auto stream = make_batch_stream(small.plan);
  const auto first = rest_of_epoch(*stream), second = rest_of_epoch(*stream);
  EXPECT_NE(first[0]->src, second[0]->src);
  small.plan.seed = 2;
  EXPECT_NE(make_batch_stream(small.plan)->next()->src, first[0]->src);
}

TEST(BatchStream, GoesOnFromAnyPosition) {
  const SmallPlan small;
  const auto whole = make_batch_stream(small.plan);
  std::vector<std::pair<DataPosition, BatchPtr>> batches;
  for (int i = 0; i < 70; ++i) {
    const DataPosition position = whole->position();
    batches.emplace_back(position, whole->next());
  }
  EXPECT_GT(whole->position().epoch, 0);
  for (size_t start = 0; start < batches.size(); start += 3) {
    const auto resumed = make_batch_stream(small.plan, batches[start].first);
    EXPECT_EQ(resumed->position(), batches[start].first);
    for (size_t i = start; i < std::min(start + 5, batches.size()); ++i) ASSERT_TRUE(*resumed->next() == *batches[i].second);
  }
}

TEST(BatchStream, GoesOnWithTheNextEpochFromAPositionBeyondTheEnd) {
  const SmallPlan small;
  const auto beyond = make_batch_stream(small.plan, {0, std::numeric_limits<int64_t>::max()});
  EXPECT_TRUE(*beyond->next() == *make_batch_stream(small.plan, {1, 0})->next());
  EXPECT_EQ(beyond->position(), (DataPosition{1, 1}));
}

TEST(BatchStream, DrawsCorporaByWeight) {
  SmallPlan small(100);
  small.add(40, 3);
  const auto stream = make_batch_stream(small.plan);
  const auto draws = draws_of(rest_of_epoch(*stream), small.plan);
  EXPECT_EQ(draws.size(), 140u);
  for (const auto& [id, count] : draws) EXPECT_EQ(count, id < 100 ? 1 : 3);
}

TEST(BatchStream, TellsTheDrawsOfASentenceApart) {
  SmallPlan small(100);
  small.add(40, 3);
  std::set<int64_t> ids;
  const auto stream = make_batch_stream(small.plan);
  for (const BatchPtr& batch : rest_of_epoch(*stream)) ids.insert(batch->src_shape->ids().begin(), batch->src_shape->ids().end());
  EXPECT_EQ(ids.size(), 220u);  // dropout goes by them
}

TEST(BatchStream, DrawsAFractionOfACorpusAndAnotherOneEachEpoch) {
  SmallPlan small(100);
  small.add(200, 1.25);
  small.add(100, 0.1);
  const auto stream = make_batch_stream(small.plan);
  std::set<int64_t> twice, tenth;
  for (int epoch = 0; epoch < 40; ++epoch) {
    int64_t second = 0, third = 0;
    for (const auto& [id, count] : draws_of(rest_of_epoch(*stream), small.plan)) {
      second += id >= 100 && id < 300 ? count : 0;
      third += id >= 300 ? count : 0;
      if (id >= 100 && id < 300 && count == 2) twice.insert(id);
      if (id >= 300) tenth.insert(id);
    }
    EXPECT_EQ(second, 250);
    EXPECT_EQ(third, 10);
  }
  EXPECT_GT(twice.size(), 195u);
  EXPECT_GT(tenth.size(), 90u);
}

TEST(BatchStream, MixesCorpora) {
  SmallPlan small(1000);
  small.add(1000, 1);
  const auto stream = make_batch_stream(small.plan);
  int mixed = 0, batches = 0;
  for (const BatchPtr& batch : rest_of_epoch(*stream)) {
    const auto& ids = batch->src_shape->ids();
    mixed +=
        std::ranges::any_of(ids, [](int64_t id) { return id < 1000; }) && std::ranges::any_of(ids, [](int64_t id) { return id >= 1000; });
    ++batches;
  }
  EXPECT_GT(mixed, batches * 9 / 10);
}

TEST(BatchStream, EndsWhileItIsFullAndWhileItIsNot) {
  const SmallPlan small;
  for (int round = 0; round < 300; ++round) {
    const auto stream = make_batch_stream(small.plan);
    for (int i = 0; i < round % 3; ++i) stream->next();
  }
}

/// Samples nothing.
class Broken : public Vocabulary {
  int64_t size() const override { return 3; }
  std::vector<TokenId> encode(std::string_view) const override { throw DataError("broken"); }
  std::vector<TokenId> sample(std::string_view, double, int64_t, uint64_t) const override { throw DataError("broken"); }
  std::string decode(std::span<const TokenId>) const override { return {}; }
  const std::string& piece(TokenId) const override { return none_; }
  TokenId id_of(std::string_view) const override { return kUnk; }
  std::vector<int32_t> words_of(std::string_view, std::span<const TokenId>) const override { return {}; }
  const std::string& serialized() const override { return none_; }
  std::string normalization() const override { return ""; }
  bool is_sentencepiece() const override { return true; }
  std::string none_;
};

TEST(BatchStream, ThrowsWhatGoesWrongInItsThread) {
  SmallPlan small;
  small.options.spm_alpha = small.plan.spm_alpha = 0.1;
  small.plan.corpora = {small.open("w0\n", "w0\n")};
  small.plan.vocabularies.src = small.plan.vocabularies.tgt = std::make_shared<Broken>();
  const auto stream = make_batch_stream(small.plan);
  EXPECT_THROW(stream->next(), DataError);
  EXPECT_THROW(stream->next(), DataError);
}

TEST(BatchStream, SamplesNothingOfALineThatIsCropped) {
  SmallPlan small;
  small.options.spm_alpha = small.plan.spm_alpha = 0.1;
  small.options.max_length = small.plan.max_length = 2;
  small.options.long_lines = LongLines::kCrop;
  small.plan.corpora = {small.open("w0 w1 w2\n", "w3 w4 w5\n")};
  small.plan.vocabularies.src = small.plan.vocabularies.tgt = std::make_shared<Broken>();
  const BatchPtr batch = make_batch_stream(small.plan)->next();
  EXPECT_THAT(batch->src, ElementsAre(3, 4, kEos));
  EXPECT_THAT(batch->tgt, ElementsAre(6, 7, kEos));
}

/// A corpus of SentencePiece segmentations drawn anew each epoch.
struct SampledPlan : SmallCorpus {
  BatchPlan plan;

  explicit SampledPlan(SubwordType type) {
    options.spm_alpha = plan.spm_alpha = type == SubwordType::kBpe ? 0.3 : 0.2;
    options.max_length = plan.max_length = 40;
    const std::string src = sample_text(100, 1), tgt = sample_text(100, 2);
    DataOptions training;
    training.vocab_size = 80;
    training.spm_type = type;
    const std::string model = train_sentencepiece({folder.write("text", sample_text())}, training);
    vocabularies.src = vocabularies.tgt = sentencepiece_from_bytes(model, "model");
    plan.corpora = {open(src, tgt)};
    plan.weights = {1};
    plan.batch_tokens = 200;
    plan.vocabularies = vocabularies;
  }
};

class SampledStream : public ::testing::TestWithParam<SubwordType> {};
INSTANTIATE_TEST_SUITE_P(Types, SampledStream, ::testing::Values(SubwordType::kUnigram, SubwordType::kBpe),
                         [](const auto& type) { return type.param == SubwordType::kBpe ? "Bpe" : "Unigram"; });

std::vector<TokenId> src_of(const Batch& batch, int64_t b) {
  const auto begin = batch.src.begin() + batch.src_shape->begin(b);
  return {begin, begin + batch.src_shape->length(b)};
}

TEST_P(SampledStream, BringsTheSameTextInOtherPieces) {
  const SampledPlan sampled(GetParam());
  const auto stream = make_batch_stream(sampled.plan);
  int other = 0;
  for (const BatchPtr& batch : rest_of_epoch(*stream)) {
    for (int64_t b = 0; b < batch->src_shape->num_sentences(); ++b) {
      const int64_t id = batch->src_shape->id(b);
      const std::vector<TokenId> ids = src_of(*batch, b);
      EXPECT_EQ(sampled.vocabularies.src->decode(ids), sampled.plan.corpora[0]->src_text(id));
      EXPECT_EQ(ids.back(), kEos);
      EXPECT_LE(ids.size(), 41u);
      other += !std::ranges::equal(ids, sampled.plan.corpora[0]->src(id));
    }
  }
  EXPECT_GT(other, 10);
}

TEST_P(SampledStream, DrawsAnewEachEpoch) {
  const SampledPlan sampled(GetParam());
  const auto stream = make_batch_stream(sampled.plan);
  std::map<int64_t, std::set<std::vector<TokenId>>> seen;
  for (int epoch = 0; epoch < 3; ++epoch)
    for (const BatchPtr& batch : rest_of_epoch(*stream))
      for (int64_t b = 0; b < batch->src_shape->num_sentences(); ++b) seen[batch->src_shape->id(b)].insert(src_of(*batch, b));
  int varied = 0;
  for (const auto& [id, segmentations] : seen) varied += segmentations.size() > 1;
  EXPECT_GT(varied, 20);
}

TEST_P(SampledStream, DrawsAnewForEachCopyOfASentence) {
  SampledPlan sampled(GetParam());
  sampled.plan.weights = {4};
  const auto stream = make_batch_stream(sampled.plan);
  std::map<int64_t, std::set<std::vector<TokenId>>> seen;
  const int64_t sentences = sampled.plan.corpora[0]->size();  // draws 0 to that are each once, the next as many are each again
  for (const BatchPtr& batch : rest_of_epoch(*stream))
    for (int64_t b = 0; b < batch->src_shape->num_sentences(); ++b) seen[batch->src_shape->id(b) % sentences].insert(src_of(*batch, b));
  int varied = 0;
  for (const auto& [id, segmentations] : seen) varied += segmentations.size() > 1;
  EXPECT_GT(varied, 20);
}

TEST_P(SampledStream, GoesOnFromAnyPosition) {
  const SampledPlan sampled(GetParam());
  const auto whole = make_batch_stream(sampled.plan);
  for (int i = 0; i < 30; ++i) {
    const DataPosition position = whole->position();
    ASSERT_TRUE(*whole->next() == *make_batch_stream(sampled.plan, position)->next());
  }
}

}  // namespace
}  // namespace lacuna
