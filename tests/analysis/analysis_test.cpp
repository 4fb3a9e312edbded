#include "analysis/analysis.h"

#include <gmock/gmock.h>

#include "analysis/align_text.h"
#include "small_analysis.h"

namespace lacuna {
namespace {

const HeadSums& head(const ModelAnalysis& found, AttentionSite site, int layer, size_t number) {
  return found.places[found.place_of(site, layer)].sums.heads[number];
}

TEST(Analysis, SeesEveryRowOfEveryPlace) {
  const SmallCorpus corpus;
  const ModelAnalysis found = corpus.analyze(*small_model_with("softmax"));
  EXPECT_EQ(found.pairs, 4);
  EXPECT_EQ(found.empty_pairs, 1);
  EXPECT_EQ(found.src_tokens, 4 + 3 + 6 + 2);
  EXPECT_EQ(found.tgt_tokens, 3 + 4 + 5 + 2);
  ASSERT_EQ(found.places.size(), 6u);
  for (int layer = 0; layer < 2; ++layer) {
    EXPECT_EQ(head(found, AttentionSite::kEncoderSelf, layer, 0).rows, found.src_tokens);
    EXPECT_EQ(head(found, AttentionSite::kEncoderSelf, layer, 0).weights, 16 + 9 + 36 + 4);
    EXPECT_EQ(head(found, AttentionSite::kDecoderSelf, layer, 1).weights, 6 + 10 + 15 + 3);  // a token sees itself and those before it
    EXPECT_EQ(head(found, AttentionSite::kCross, layer, 1).weights, 3 * 4 + 4 * 3 + 5 * 6 + 2 * 2);
    EXPECT_EQ(head(found, AttentionSite::kCross, layer, 1).zeros, 0);
  }
}

TEST(Analysis, DoesNotDependOnBatches) {
  SmallCorpus corpus;
  const auto model = small_model_with("rela");
  const ModelAnalysis together = corpus.analyze(*model);
  corpus.settings.batch_tokens = 1;
  const ModelAnalysis apart = corpus.analyze(*model);
  for (size_t i = 0; i < together.places.size(); ++i) {
    const PlaceSums &a = together.places[i].sums, &b = apart.places[i].sums;
    EXPECT_EQ(a.pooled().zeros, b.pooled().zeros);
    EXPECT_EQ(a.pooled().nulls, b.pooled().nulls);
    EXPECT_EQ(a.pooled().entropy, b.pooled().entropy);
    for (size_t t = 0; t < a.divergence.size(); ++t) EXPECT_EQ(a.divergence[t], b.divergence[t]);
  }
}

TEST(Analysis, SeesLearnedNumbers) {
  const SmallCorpus corpus;
  const ModelAnalysis found = corpus.analyze(*small_model_with("{cross: {type: entmax, alpha: learned, alpha_init: 1.5}}"));
  const auto& numbers = found.places[found.place_of(AttentionSite::kCross, 1)].numbers;
  ASSERT_EQ(numbers.count("alpha"), 1u);
  for (const double alpha : numbers.at("alpha").mean()) EXPECT_NEAR(alpha, 1.5, 1e-6);
}

TEST(Analysis, SeesGatesOfCalibratedAttention) {
  SmallCorpus corpus;
  corpus.settings.only = {"gate"};
  const ModelAnalysis found = corpus.analyze(*small_model_with("{cross: calibrated}"));
  EXPECT_THAT(found.notes, testing::IsEmpty());
  for (const double gate : found.places[found.place_of(AttentionSite::kCross, 1)].numbers.at("gate").mean()) {
    EXPECT_GT(gate, 0);
    EXPECT_LT(gate, 1);
  }
}

TEST(Analysis, ComparesHeadsBySoftmaxWhereWhatMakesTheirWeightsIsRectified) {
  const SmallCorpus corpus;
  const ModelAnalysis found = corpus.analyze(*small_model_with("{decoder_self: calibrated, cross: {type: calibrated, base: rela}}"));
  const PlaceAnalysis &of_rela = found.places[found.place_of(AttentionSite::kCross, 0)],
                      &of_softmax = found.places[found.place_of(AttentionSite::kDecoderSelf, 0)];
  EXPECT_TRUE(of_rela.is_rectified && of_rela.shows_mask);
  EXPECT_TRUE(!of_softmax.is_rectified && of_softmax.shows_mask);
  EXPECT_GT(of_rela.sums.divergence[3], 0);
  EXPECT_EQ(of_softmax.sums.divergence[3], 0);
}

TEST(NumberMean, IsTheMeanOverQueries) {
  NumberMean numbers;
  numbers.add({1, 2}, 3);
  numbers.add({2, 4}, 1);
  EXPECT_EQ(numbers.mean(), (std::vector<double>{1.25, 2.5}));
}

TEST(Analysis, OfGoldLinksHasAnErrorRateForEachHeadAndTheAverage) {
  SmallCorpus corpus;
  corpus.settings.gold = corpus.folder.write("gold", "0-1 1-0\n0-1 1-0 1-2\n\n4-0 3-1 2-2 1-3\n0-0\n");
  const ModelAnalysis found = corpus.analyze(*small_model_with("softmax"));
  EXPECT_EQ(found.alignment->sentences(), 4);
  EXPECT_EQ(found.alignment->num_systems(), 2u * 3 * 2);
  const LinkCounts& average = found.alignment->total(found.system_of(1, 2, AlignmentStep::kShifted));
  EXPECT_EQ(average.sure, 2 + 3 + 4 + 1);
  EXPECT_EQ(average.links, 2 + 3 + 4 + 1);  // softmax links every target word
}

TEST(Analysis, ShufflesReferencesSoThatNonePairKeepsItsOwn) {
  SmallCorpus corpus;
  corpus.settings.shuffle_references = true;
  const ModelAnalysis found = corpus.analyze(*small_model_with("rela"));
  const PlaceAnalysis& cross = found.places[found.place_of(AttentionSite::kCross, 0)];
  EXPECT_EQ(cross.shuffled.pooled().rows, cross.sums.pooled().rows);  // the same targets
  EXPECT_NE(cross.shuffled.pooled().weights, cross.sums.pooled().weights);
}

TEST(Analysis, SaysHowManyPairsHaveNoReferenceToShuffle) {
  SmallCorpus corpus;
  corpus.settings.shuffle_references = true;
  const auto model = small_model_with("rela");
  const auto is_of_shuffling = testing::HasSubstr("shuffled references");
  EXPECT_THAT(corpus.analyze(*model).notes, testing::Not(testing::Contains(is_of_shuffling)));
  std::string lines;
  for (int i = 0; i < 2049; ++i) lines += "a\n";
  corpus.settings.src = corpus.folder.write("src", lines);
  corpus.settings.tgt = corpus.folder.write("tgt", lines);
  corpus.settings.num_pairs = 2049;
  const ModelAnalysis found = corpus.analyze(*model);
  EXPECT_THAT(found.notes, testing::Contains("shuffled references: 1 of 2049 pairs, alone among 2048 lines"));
  const PlaceAnalysis& cross = found.places[found.place_of(AttentionSite::kCross, 0)];
  EXPECT_EQ(cross.sums.heads[0].rows - cross.shuffled.heads[0].rows, 2);  // a and eos
}

TEST(Analysis, KeepsTheWeightsThatWereAskedFor) {
  SmallCorpus corpus;
  corpus.settings.explored = 2;
  corpus.settings.saved_lines = {1, 3};
  corpus.settings.saved_layers = {1};
  corpus.settings.saved_heads = {0};
  const ModelAnalysis found = corpus.analyze(*small_model_with("softmax"));
  ASSERT_EQ(found.explored.kept.size(), 2u);
  EXPECT_EQ(found.explored.kept[1].src, (std::vector<std::string>{"d", "e", "</s>"}));
  EXPECT_EQ(found.explored.kept[1].scales.size(), 6u);
  ASSERT_EQ(found.saved.size(), 2u * 3);
  const Tensor cross = found.saved.at("line.4.cross.1"), self = found.saved.at("line.4.decoder_self.1");
  EXPECT_EQ(cross.sizes(), (std::vector<int64_t>{1, 5, 6}));
  EXPECT_LT((cross.sum(2) - 1).abs().max().item<float>(), 1e-5);
  EXPECT_TRUE(std::isnan(self[0][0][1].item<float>()));  // not visible
}

TEST(Analysis, SaysWhatAModelHasNot) {
  SmallCorpus corpus;
  EXPECT_THAT(corpus.analyze(*small_model_with("softmax")).notes,
              testing::IsSupersetOf({"alpha: no head learns one", "gate: no head learns one"}));
  corpus.settings.only = {"calibration", "span"};
  EXPECT_EQ(corpus.analyze(*small_model_with("softmax")).notes,
            (std::vector<std::string>{"span: no head learns one", "calibration: no layer is calibrated"}));
}

/// Options of models with these kinds of attention.
std::vector<Options> options_with(const std::vector<std::string>& kinds) {
  std::vector<Options> all;
  for (const std::string& attention : kinds) {
    all.emplace_back().model = small_options();
    all.back().model.attention = parse_yaml_value(attention, "attention");
  }
  return all;
}

TEST(MissingMeasures, AreWhatHeadsDoNotLearnAndLayersDoNotHave) {
  AnalysisSettings settings;
  settings.only = {"alpha", "span", "gate", "calibration"};
  const auto missing = [&](const std::string& attention) {
    std::vector<std::string> names;
    for (const MissingMeasure& one : missing_measures(options_with({attention}).front().model, settings)) names.push_back(one.measure);
    return names;
  };
  EXPECT_THAT(missing("softmax"), testing::ElementsAre("alpha", "span", "gate", "calibration"));
  EXPECT_THAT(missing("{cross: {type: entmax, alpha: learned}}"), testing::ElementsAre("span", "gate", "calibration"));
  EXPECT_THAT(missing("{decoder_self: span}"), testing::ElementsAre("alpha", "gate", "calibration"));
  EXPECT_THAT(missing("{cross: calibrated}"), testing::ElementsAre("alpha", "span"));
  EXPECT_THAT(missing("{cross: {type: calibrated, combine: anneal, anneal_steps: 1}}"), testing::ElementsAre("alpha", "span", "gate"));
}

TEST(MissingMeasures, AreRefusedWhereNoModelHasAnyThatWasNamed) {
  AnalysisSettings settings;
  settings.only = {"alpha", "calibration"};
  require_measures({"a", "b"}, options_with({"softmax", "{cross: calibrated}"}), settings);
  EXPECT_THAT(
      message_of<ConfigError>([&] {
        require_measures({"a", "b"}, options_with({"softmax", "rela"}), settings);
      }),
      testing::HasSubstr("a, b: nothing to analyse: alpha: no head learns one; calibration: no layer is calibrated. Leave --only out"));
  settings.only = {};
  require_measures({"a"}, options_with({"softmax"}), settings);
}

TEST(Analysis, MeasuresImportanceOfOtherPairsInPlaceOfThoseThatAreLeftOut) {
  SmallCorpus corpus;
  const auto model = small_model_with("softmax");
  const auto sampled = [&](const std::string& tgt, int64_t wanted) {
    corpus.settings.tgt = corpus.folder.write("tgt", tgt);
    corpus.settings.importance_sentences = wanted;
    return corpus.analyze(*model);
  };
  EXPECT_EQ(sampled("b a\ne d d\nc\nj i h g\n\n", 1).importance_pairs, 1);  // the last line, which one would be, has an empty side
  EXPECT_EQ(sampled("b a\n\nc\nj i h g\nl\n", 2).importance_pairs, 2);      // of lines 3 and 5 the first has
  const ModelAnalysis all = sampled("b a\ne d d\nc\nj i h g\nl\n", 5);
  EXPECT_EQ(all.importance_pairs, 4);
  EXPECT_THAT(all.notes, testing::Contains("importance: 1 of 5 pairs, left out with no other to take in their place"));
}

TEST(Analysis, OfAModelWhoseNumbersAreNoneIsRefused) {
  const SmallCorpus corpus;
  const auto model = small_model_of_nans();
  EXPECT_THAT(message_of<CheckpointError>([&] { corpus.analyze(*model); }), testing::HasSubstr("are not numbers"));
  SentencePair pair;
  pair.src = {5, 9, 2};
  pair.tgt = {6, 4, 2};
  EXPECT_THROW(align_pairs({"small", *model, words_a_to_t()}, {pair}, {}, LinkUnit::kPiece, 100), CheckpointError);
}

TEST(Analysis, OfNothingIsRefused) {
  SmallCorpus corpus;
  corpus.settings.src = corpus.folder.write("src", "\na\n");
  corpus.settings.tgt = corpus.folder.write("tgt", "b\n\n");
  EXPECT_THAT(message_of<DataError>([&] { corpus.analyze(*small_model_with("softmax")); }), testing::HasSubstr("nothing to analyse"));
}

/// One that reads no more than so many tokens a side.
std::shared_ptr<Transformer> small_model_of_positions(int64_t positions) {
  ModelOptions options = small_options();
  options.positions = Positions::kLearned;
  options.max_positions = positions;
  return small_model(options);
}

TEST(Analysis, LeavesOutAndCountsSentencesLongerThanTheModelReads) {
  SmallCorpus corpus;
  corpus.settings.gold = corpus.folder.write("gold", "0-1\n0-1\n\n4-0\n0-0\n");
  corpus.settings.importance_sentences = 5;
  corpus.settings.shuffle_references = true;
  const ModelAnalysis found = corpus.analyze(*small_model_of_positions(5));
  EXPECT_EQ(found.pairs, 3);
  EXPECT_EQ(found.empty_pairs, 1);
  EXPECT_EQ(found.long_pairs.count, 1);
  EXPECT_EQ(found.src_tokens, 4 + 3 + 2);
  EXPECT_EQ(found.alignment->sentences(), 3);
  EXPECT_EQ(found.importance_pairs, 3);
  EXPECT_EQ(found.explored.kept.back().line, 4);
  EXPECT_EQ(found.places[0].shuffled.pooled().rows, found.places[0].sums.pooled().rows);
  EXPECT_THAT(found.long_pairs.message("is left out", 5, found.max_tokens),
              testing::AllOf(testing::HasSubstr("1 of 5 pairs is left out: a side has more than 5 tokens"),
                             testing::HasSubstr("the first is line 4")));
  EXPECT_THAT(message_of<DataError>([&] { corpus.analyze(*small_model_of_positions(1)); }),
              testing::HasSubstr("all are empty on a side, or longer than 1 token"));
}

TEST(PairReader, KeepsNothingOfAPairThatIsTooLong) {
  SmallCorpus corpus;
  PairReader reader(corpus.settings.src, corpus.settings.tgt, words_a_to_t(), 5, LongPairs::kMark);
  const std::vector<SentencePair> pairs = reader.next(10);
  ASSERT_EQ(pairs.size(), 5u);
  EXPECT_TRUE(pairs[3].is_long && pairs[3].is_left_out());
  EXPECT_FALSE(pairs[3].is_empty());
  EXPECT_EQ(pairs[3].line, 3);
  EXPECT_TRUE(pairs[3].src.empty() && pairs[3].tgt.empty() && pairs[3].src_text.empty() && pairs[3].tgt_text.empty());
  EXPECT_TRUE(pairs[2].is_empty() && !pairs[2].is_long);
  EXPECT_EQ(pairs[4].src_text, "k");
}

TEST(PairReader, PassesOverAllButTheFirstOfEveryFew) {
  SmallCorpus corpus;
  PairReader reader(corpus.settings.src, corpus.settings.tgt, words_a_to_t(), 5);  // line 4 is too long, and passed over
  EXPECT_EQ(reader.next(1, 2).at(0).line, 0);
  const std::vector<SentencePair> rest = reader.next(10, 2);
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest[0].line, 2);
  EXPECT_EQ(rest[1].line, 4);
  EXPECT_EQ(rest[1].src_text, "k");
}

/// One token, however many words a line has: as of words that normalization leaves nothing of.
class FewTokens : public Vocabulary {
 public:
  int64_t size() const override { return kSmallVocabulary; }
  bool is_sentencepiece() const override { return false; }
  std::string normalization() const override { return ""; }
  const std::string& piece(TokenId /*id*/) const override { return piece_; }
  const std::string& serialized() const override { return piece_; }
  std::vector<TokenId> encode(std::string_view /*line*/) const override { return {kUnk}; }
  std::vector<TokenId> sample(std::string_view line, double /*alpha*/, int64_t /*nbest*/, uint64_t /*random_key*/) const override {
    return encode(line);
  }
  std::string decode(std::span<const TokenId> /*ids*/) const override { return piece_; }
  TokenId id_of(std::string_view /*piece*/) const override { return kUnk; }
  std::vector<int32_t> words_of(std::string_view /*line*/, std::span<const TokenId> ids) const override {
    return std::vector<int32_t>(ids.size(), 0);
  }

 private:
  std::string piece_ = "x";
};

TEST(PairReader, TakesAPairWithMoreWordsThanCanBeLookedAtForALongOne) {
  const ScratchFolder folder;
  std::string most = "a";
  for (int64_t i = 1; i < kMostToLookAt; ++i) most += " a";
  const std::string src = folder.write("src", most + "\n" + most + " a\na\n"), tgt = folder.write("tgt", "a\na\n" + most + " a\n");
  const auto few = std::make_shared<const FewTokens>();
  const auto is_long = [&](LongPairs long_pairs) {
    PairReader reader(src, tgt, {few, few}, kMostToLookAt, long_pairs);
    std::vector<bool> found;
    for (const SentencePair& pair : reader.next(10)) found.push_back(pair.is_long);
    return found;
  };
  EXPECT_EQ(is_long(LongPairs::kMark), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(is_long(LongPairs::kRefuse), (std::vector<bool>{false, false, false}));  // scores need no matrix of words
}

TEST(Analysis, CountsAPairWithAnEmptySideAsEmptyHoweverLongTheOther) {
  SmallCorpus corpus;
  corpus.settings.tgt = corpus.folder.write("tgt", "b a\ne d d\na b c d e f\nj i h g\nl\n");
  const ModelAnalysis found = corpus.analyze(*small_model_of_positions(6));
  EXPECT_EQ(found.empty_pairs, 1);
  EXPECT_EQ(found.long_pairs.count, 0);
}

TEST(Analysis, KeepsNoWeightsOfASentenceThatIsTooLargeForTheReport) {
  SmallCorpus corpus;
  std::string line = "a";
  for (int i = 0; i < 1200; ++i) line += " b";  // 2 heads of 6 places: 17 million weights
  corpus.settings.src = corpus.folder.write("src", "a\n" + line + "\nb c\n");
  corpus.settings.tgt = corpus.folder.write("tgt", "b\n" + line + "\nc\n");
  corpus.settings.only = {"sparsity"};
  const ModelAnalysis found = corpus.analyze(*small_model_with("softmax"));
  EXPECT_THAT(found.explored.omitted, testing::ElementsAre(1));
  ASSERT_EQ(found.explored.kept.size(), 2u);
  EXPECT_EQ(found.explored.kept[1].line, 2);
  for (const ExploredSentence& one : found.explored.kept) EXPECT_EQ(one.scales.size(), 6u);
}

}  // namespace
}  // namespace lacuna
