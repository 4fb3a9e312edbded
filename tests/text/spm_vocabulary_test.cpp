#include <gmock/gmock.h>
#include <sentencepiece_trainer.h>

#include <map>
#include <set>
#include <unordered_map>

#include "../base/scratch_folder.h"
#include "base/error.h"
#include "sample_text.h"
#include "text/spm_trainer.h"
#include "text/vocabulary.h"

namespace lacuna {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Ids = std::vector<TokenId>;

VocabularyPtr trained(SubwordType type) {
  static std::map<SubwordType, VocabularyPtr> models;
  VocabularyPtr& model = models[type];
  if (!model) {
    const ScratchFolder folder;
    DataOptions training;
    training.vocab_size = 80;
    training.spm_type = type;
    model = sentencepiece_from_bytes(train_sentencepiece({folder.write("text", sample_text())}, training), "model");
  }
  return model;
}

class SpmVocabulary : public ::testing::TestWithParam<SubwordType> {
 protected:
  VocabularyPtr vocabulary_ = trained(GetParam());
  std::string text_of(const Ids& ids) const { return vocabulary_->decode(ids); }
};
INSTANTIATE_TEST_SUITE_P(Types, SpmVocabulary, ::testing::Values(SubwordType::kUnigram, SubwordType::kBpe),
                         [](const auto& type) { return type.param == SubwordType::kBpe ? "Bpe" : "Unigram"; });

TEST_P(SpmVocabulary, DecodesWhatItEncodes) {
  for (const std::string line : {"haus", "straße am wasser", "hausen baumlich türchen"})
    EXPECT_EQ(text_of(vocabulary_->encode(line)), line);
}

TEST_P(SpmVocabulary, NormalisesSpacesAndWidths) {
  EXPECT_EQ(text_of(vocabulary_->encode("  haus \t ｂaum  ")), "haus baum");
  EXPECT_EQ(text_of(vocabulary_->encode("haus\u2028baum")), "haus baum");
}

TEST_P(SpmVocabulary, OfAnEmptyLineGivesNothing) {
  EXPECT_THAT(vocabulary_->encode(""), SizeIs(0));
  EXPECT_THAT(vocabulary_->encode("   "), SizeIs(0));
  EXPECT_THAT(vocabulary_->sample("", 0.1, 8, 1), SizeIs(0));
  EXPECT_EQ(text_of({}), "");
}

TEST_P(SpmVocabulary, NeverMakesSpecialIdsOfText) {
  const std::string line = "haus </s> <s> baum <unk>";
  EXPECT_THAT(vocabulary_->encode(line), AllOf(Not(Contains(kBos)), Not(Contains(kEos))));
  for (uint64_t key = 0; key < 50; ++key)
    EXPECT_THAT(vocabulary_->sample(line, 0.2, 16, key), AllOf(Not(Contains(kBos)), Not(Contains(kEos))));
}

TEST_P(SpmVocabulary, LeavesBosAndEosOutOfText) {
  Ids ids = vocabulary_->encode("haus");
  ids.insert(ids.begin(), kBos);
  ids.push_back(kEos);
  EXPECT_EQ(text_of(ids), "haus");
}

TEST_P(SpmVocabulary, EncodesALineOfAHundredThousandCharacters) {
  std::string line;
  while (line.size() < 100000) line += "hausung ";
  line.pop_back();
  EXPECT_EQ(text_of(vocabulary_->encode(line)), line);
}

TEST_P(SpmVocabulary, SamplesByItsKeyAlone) {
  std::set<Ids> seen;
  for (uint64_t key = 0; key < 50; ++key) {
    const Ids ids = vocabulary_->sample("gartenlich wasserung steinchen", 0.3, 64, key);
    EXPECT_EQ(ids, vocabulary_->sample("gartenlich wasserung steinchen", 0.3, 64, key));
    seen.insert(ids);
  }
  EXPECT_GT(seen.size(), 1u);
}

TEST_P(SpmVocabulary, SamplesSegmentationsOfTheSameText) {
  for (uint64_t key = 0; key < 50; ++key)
    EXPECT_EQ(text_of(vocabulary_->sample("gartenlich  wasserung steinchen", 0.3, 64, key)), "gartenlich wasserung steinchen");
}

TEST_P(SpmVocabulary, WithoutAlphaSamplesTheBestSegmentation) {
  EXPECT_EQ(vocabulary_->sample("gartenlich wasserung steinchen", 0, 64, 1), vocabulary_->encode("gartenlich wasserung steinchen"));
}

TEST(BpeVocabulary, WithNextToNoDropoutEncodesAsSentencePieceDoes) {
  const VocabularyPtr vocabulary = trained(SubwordType::kBpe);
  std::istringstream lines(sample_text(200, 7) + "x häuser ?? straßen\n");
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(vocabulary->sample(line, 1e-12, 2, 1), vocabulary->encode(line)) << line;
}

using SpmSettings = std::unordered_map<std::string, std::string>;

/// Trains a model by SentencePiece directly, with settings that our trainer does not offer.
VocabularyPtr bpe_with(SpmSettings settings) {
  const ScratchFolder folder;
  settings.merge(
      SpmSettings{{"input", folder.write("text", sample_text())}, {"model_type", "bpe"}, {"vocab_size", "350"}, {"minloglevel", "2"}});
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, nullptr, &model);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return sentencepiece_from_bytes(model, "model");
}

TEST(BpeVocabulary, TakesThePieceOfTheTextForEosWhereAModelHasSuch) {
  const VocabularyPtr vocabulary = bpe_with({{"user_defined_symbols", "</s>"}, {"bos_id", "-1"}, {"eos_id", "-1"}, {"pad_id", "-1"}});
  EXPECT_GT(vocabulary->id_of("</s>"), kEos);
  EXPECT_EQ(vocabulary->id_of("<s>"), kBos);
  for (uint64_t key = 0; key < 20; ++key)
    EXPECT_THAT(vocabulary->sample("haus </s> baum", 0.3, 2, key), AllOf(Not(Contains(kEos)), Contains(vocabulary->id_of("</s>"))));
}

TEST(BpeVocabulary, KeepsUserDefinedSymbolsWhole) {
  // one that merging does not make, and one that it does
  const VocabularyPtr vocabulary = bpe_with({{"byte_fallback", "true"}, {"user_defined_symbols", "<sep>,hausbaum"}});
  const std::string line = "gartenlich<sep>wasserung hausbaum €";
  std::set<Ids> seen;
  for (uint64_t key = 0; key < 50; ++key) {
    const Ids ids = vocabulary->sample(line, 0.5, 2, key);
    EXPECT_THAT(ids, AllOf(Contains(vocabulary->id_of("<sep>")), Contains(vocabulary->id_of("hausbaum"))));
    EXPECT_EQ(vocabulary->decode(ids), line);
    seen.insert(ids);
  }
  EXPECT_GT(seen.size(), 10u);
}

TEST(UnigramVocabulary, WithLargeAlphaSamplesTheBestMoreOften) {
  const VocabularyPtr vocabulary = trained(SubwordType::kUnigram);
  const std::string line = "gartenlich wasserung steinchen";
  const auto share_of_best = [&](double alpha) {
    int best = 0;
    for (uint64_t key = 0; key < 2000; ++key) best += vocabulary->sample(line, alpha, 8, key) == vocabulary->encode(line);
    return best / 2000.0;
  };
  EXPECT_LT(share_of_best(0.01), 0.25);
  EXPECT_GT(share_of_best(1), share_of_best(0.1));
}

TEST(UnigramVocabulary, WithAlphaNearZeroSamplesTheNBestEvenly) {
  const VocabularyPtr vocabulary = trained(SubwordType::kUnigram);
  std::map<Ids, int> counts;
  for (uint64_t key = 0; key < 8000; ++key) ++counts[vocabulary->sample("gartenlich wasserung steinchen", 1e-9, 8, key)];
  EXPECT_THAT(counts, SizeIs(8));
  for (const auto& [ids, count] : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST_P(SpmVocabulary, NamesTheWordOfEachPiece) {
  const std::string line = "haus gartenlich tür";
  const Ids ids = vocabulary_->encode(line);
  const std::vector<int32_t> words = vocabulary_->words_of(line, ids);
  ASSERT_EQ(words.size(), ids.size());
  std::vector<std::string> texts(3);
  for (size_t i = 0; i < ids.size(); ++i) texts.at(static_cast<size_t>(words[i])) += vocabulary_->piece(ids[i]);
  for (std::string& text : texts)
    while (text.starts_with("▁")) text.erase(0, 3);
  EXPECT_THAT(texts, ElementsAre("haus", "gartenlich", "tür"));
}

TEST_P(SpmVocabulary, GoesByThePiecesWhereTheyAreNotThoseOfTheLine) {
  const std::string line = "haus gartenlich", turned = "gartenlich haus";  // as many pieces
  const Ids ids = vocabulary_->encode(turned);
  ASSERT_EQ(ids.size(), vocabulary_->encode(line).size());
  EXPECT_EQ(vocabulary_->words_of(line, ids), vocabulary_->words_of(turned, ids));
  EXPECT_NE(vocabulary_->words_of(line, ids), vocabulary_->words_of(line, vocabulary_->encode(line)));
}

TEST_P(SpmVocabulary, FindsTheWordsOfATextThatWasDecoded) {
  Ids ids = vocabulary_->encode("haus");
  for (const char* const more : {"▁", "▁", "⁇"}) ids.push_back(vocabulary_->id_of(more));  // spaces, and what is unknown
  for (const TokenId id : vocabulary_->encode("baum")) ids.push_back(id);
  const std::string text = vocabulary_->decode(ids);
  const std::vector<int32_t> words = vocabulary_->words_of(text, ids);
  EXPECT_THAT(text, testing::MatchesRegex("haus +⁇ +baum"));
  EXPECT_EQ(words.front(), 0);
  EXPECT_EQ(words.back(), 2) << text;
}

TEST_P(SpmVocabulary, GivesEosTheNumberOfWords) {
  Ids ids = vocabulary_->encode("haus baum");
  ids.push_back(kEos);
  EXPECT_EQ(vocabulary_->words_of("haus baum", ids).back(), 2);
  EXPECT_THAT(vocabulary_->words_of("", Ids{kEos}), ElementsAre(0));
}

TEST_P(SpmVocabulary, CountsWordsPastExtraSpaces) {
  const std::string line = "  haus   baum ";
  const std::vector<int32_t> words = vocabulary_->words_of(line, vocabulary_->encode(line));
  EXPECT_EQ(words.front(), 0);
  EXPECT_EQ(words.back(), 1);
}

TEST_P(SpmVocabulary, IsTheSameAfterATripThroughItsBytes) {
  const VocabularyPtr again = sentencepiece_from_bytes(vocabulary_->serialized(), "copy");
  EXPECT_EQ(again->encode("straßen am gartenlichen haus"), vocabulary_->encode("straßen am gartenlichen haus"));
  EXPECT_EQ(again->size(), vocabulary_->size());
}

TEST(SpmVocabularyFile, ThatIsNoModelIsAnError) {
  const ScratchFolder folder;
  const std::string text = folder.write("text.model", "this is text\n"), empty = folder.write("empty.model", "");
  EXPECT_THAT(message_of<DataError>([&] { load_sentencepiece(text); }), AllOf(HasSubstr(text), HasSubstr("not a SentencePiece model")));
  EXPECT_THAT(message_of<DataError>([&] { load_sentencepiece(empty); }), HasSubstr("is empty"));
  EXPECT_THAT(message_of<DataError>([&] { load_sentencepiece(folder / "none"); }), HasSubstr("no such file"));
}

TEST(SpmVocabularyFile, ThatIsCutShortIsAnError) {
  const ScratchFolder folder;
  const std::string bytes = trained(SubwordType::kUnigram)->serialized();
  const std::string cut = folder.write("cut.model", bytes.substr(0, bytes.size() / 2));
  EXPECT_THROW(load_sentencepiece(cut), DataError);
}

}  // namespace
}  // namespace lacuna
