#include "text/spm_trainer.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "../base/scratch_folder.h"
#include "base/error.h"
#include "base/line_reader.h"
#include "sample_text.h"
#include "text/vocabulary.h"

namespace lacuna {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

DataOptions small(SubwordType type) {
  DataOptions training;
  training.vocab_size = 70;
  training.spm_type = type;
  return training;
}

class SpmTrainer : public ::testing::TestWithParam<SubwordType> {
 protected:
  ScratchFolder folder_;
  std::string text_ = folder_.write("text", sample_text());
};
INSTANTIATE_TEST_SUITE_P(Types, SpmTrainer, ::testing::Values(SubwordType::kUnigram, SubwordType::kBpe),
                         [](const auto& type) { return type.param == SubwordType::kBpe ? "Bpe" : "Unigram"; });

TEST_P(SpmTrainer, MakesAModelOfTheSizeAskedForWithOurIds) {
  const VocabularyPtr vocabulary = sentencepiece_from_bytes(train_sentencepiece({text_}, small(GetParam())), "model");
  EXPECT_EQ(vocabulary->size(), 70);
  EXPECT_EQ(vocabulary->piece(kUnk), "<unk>");
  EXPECT_EQ(vocabulary->piece(kBos), "<s>");
  EXPECT_EQ(vocabulary->piece(kEos), "</s>");
}

TEST_P(SpmTrainer, MakesTheSameBytesFromTheSameText) {
  EXPECT_EQ(train_sentencepiece({text_}, small(GetParam())), train_sentencepiece({text_}, small(GetParam())));
}

TEST_P(SpmTrainer, MakesTheSameBytesFromTheSameLines) {
  const auto read = [&](const auto& use) {
    std::string line;
    for (LineReader reader(text_); reader.next(line);) use(line);
    return 0;
  };
  EXPECT_EQ(train_sentencepiece({SpmText{"lines", read}}, small(GetParam())), train_sentencepiece({text_}, small(GetParam())));
}

TEST_P(SpmTrainer, HasTheSymbolsAskedForWholeWhereverTheyStand) {
  DataOptions training = small(GetParam());
  training.spm_symbols = {"<bt>", "<2de>"};
  const VocabularyPtr vocabulary = sentencepiece_from_bytes(train_sentencepiece({text_}, training), "model");
  EXPECT_EQ(vocabulary->size(), 70);
  const TokenId bt = vocabulary->id_of("<bt>"), to_german = vocabulary->id_of("<2de>");
  ASSERT_TRUE(bt != kUnk && to_german != kUnk);
  for (const char* line : {"<bt> a<2de> b", "<2de><bt>a"}) {
    const std::vector<TokenId> ids = vocabulary->encode(line), drawn = vocabulary->sample(line, 0.5, 16, 7);
    for (const std::vector<TokenId>* all : {&ids, &drawn}) {
      EXPECT_EQ(std::count(all->begin(), all->end(), bt), 1) << line;
      EXPECT_EQ(std::count(all->begin(), all->end(), to_german), 1) << line;
    }
    EXPECT_EQ(vocabulary->decode(ids), line);
  }
}

TEST_P(SpmTrainer, SpellsWhatItDoesNotCoverInBytes) {
  DataOptions training = small(GetParam());
  training.vocab_size = 330;
  training.spm_byte_fallback = true;
  const VocabularyPtr vocabulary = sentencepiece_from_bytes(train_sentencepiece({text_}, training), "model");
  const std::vector<TokenId> ids = vocabulary->encode("\u732B a");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), kUnk), 0);
  EXPECT_EQ(vocabulary->decode(ids), "\u732B a");
  training.vocab_size = 70;
  EXPECT_THAT(message_of<DataError>([&] { train_sentencepiece({text_}, training); }),
              AllOf(HasSubstr("vocabulary size 70"), ContainsRegex("alone take [0-9]+")));
}

TEST_P(SpmTrainer, MakesAsManyPiecesAsTheTextGives) {
  DataOptions options = small(GetParam());
  options.vocab_size = 100000;
  const VocabularyPtr vocabulary = sentencepiece_from_bytes(train_sentencepiece({text_}, options), "model");
  EXPECT_GT(vocabulary->size(), 70);
  EXPECT_LT(vocabulary->size(), 100000);
  options.vocab_size = 16;
  const std::string bases = folder_.write("bases", "A C G T\nT T A\nG C\n");
  EXPECT_LT(sentencepiece_from_bytes(train_sentencepiece({bases}, options), "model")->size(), 16);
}

TEST_P(SpmTrainer, SaysThatTheVocabularyCannotHoldTheCharacters) {
  DataOptions training = small(GetParam());
  training.vocab_size = 16;
  EXPECT_THAT(message_of<DataError>([&] { train_sentencepiece({text_}, training); }), ContainsRegex("alone take [0-9]+"));
}

TEST_P(SpmTrainer, SaysThatBlanksAreNoText) {
  const std::string blanks = folder_.write("blanks", "   \n\t \n\u3000\u00a0\n");
  EXPECT_THAT(message_of<DataError>([&] { train_sentencepiece({blanks}, small(GetParam())); }), HasSubstr("no line to train"));
}

TEST(SpmTrainerInput, IsDrawnEvenlyAndBySeed) {
  const ScratchFolder folder;
  const std::string text = folder.write("text", sample_text(2000));
  DataOptions training = small(SubwordType::kUnigram);
  training.spm_sample_lines = 500;
  const std::string first = train_sentencepiece({text}, training);
  EXPECT_EQ(first, train_sentencepiece({text}, training));
  EXPECT_NE(first, train_sentencepiece({text}, training, 2));
}

TEST(SpmTrainerInput, MayBeSeveralFiles) {
  const ScratchFolder folder;
  const std::string one = folder.write("one", sample_text()), two = folder.write("two", sample_text() + "日本語\n日本語\n");
  const VocabularyPtr vocabulary = sentencepiece_from_bytes(train_sentencepiece({one, two}, small(SubwordType::kUnigram)), "model");
  EXPECT_NE(vocabulary->id_of("日"), kUnk);
}

TEST(SpmTrainerInput, ThatIsMissingEmptyOrNotUtf8IsAnError) {
  const ScratchFolder folder;
  const DataOptions training = small(SubwordType::kUnigram);
  EXPECT_THAT(message_of<DataError>([&] { train_sentencepiece({folder / "none"}, training); }), HasSubstr("no such file"));
  const std::string lines = folder.write("lines", "\n\n"), bad = folder.write("bad", "fine\nb\xFF\n");
  EXPECT_THAT(message_of<DataError>([&] { train_sentencepiece({lines}, training); }), HasSubstr("no line"));
  const std::string document = folder.write("document", std::string(20000, 'a') + "\n");
  EXPECT_THAT(message_of<DataError>([&] { train_sentencepiece({document}, training); }), HasSubstr("longer than 16384 bytes"));
  EXPECT_THAT(message_of<DataError>([&] { train_sentencepiece({bad}, training); }), AllOf(HasSubstr("bad:2"), HasSubstr("byte 2")));
}

}  // namespace
}  // namespace lacuna
