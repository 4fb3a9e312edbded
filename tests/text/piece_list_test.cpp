#include "text/piece_list.h"

#include <gmock/gmock.h>

#include "../base/scratch_folder.h"
#include "base/error.h"
#include "sample_text.h"
#include "text/normalization.h"
#include "text/spm_trainer.h"
#include "text/vocabulary.h"

namespace lacuna {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<TokenId>;

const std::string& small_model() {
  static const std::string model = [] {
    const ScratchFolder folder;
    DataOptions training;
    training.vocab_size = 60;
    return train_sentencepiece({folder.write("text", sample_text())}, training);
  }();
  return model;
}

/// Returns the pieces that the model cuts a line into.
std::vector<std::string> cut(const std::string& line) {
  const VocabularyPtr plain = sentencepiece_from_bytes(small_model(), "model");
  std::vector<std::string> pieces;
  for (const TokenId id : plain->encode(line)) pieces.push_back(plain->piece(id));
  return pieces;
}

/// A list with the pieces of "haus" in the opposite order, and tags.
PieceList list_of_haus() {
  PieceList list{{"<unk>", "<pad>", "</s>", "der", ">>deu<<", "__de__", "deu_Latn"}, ""};
  std::vector<std::string> pieces = cut("haus");
  for (; !pieces.empty(); pieces.pop_back()) list.pieces.push_back(pieces.back());
  return list;
}

VocabularyPtr with_list(const PieceList& list) {
  return sentencepiece_from_bytes(with_piece_list(small_model(), list), "model");
}

TEST(PieceList, GivesThePiecesTheirIds) {
  const PieceList list = list_of_haus();
  const VocabularyPtr vocabulary = with_list(list);
  EXPECT_EQ(vocabulary->size(), std::ssize(list.pieces));
  Ids expected;
  for (size_t i = 0; i < cut("haus").size(); ++i) expected.push_back(static_cast<TokenId>(list.pieces.size() - 1 - i));
  EXPECT_EQ(vocabulary->encode("haus"), expected);
  EXPECT_EQ(vocabulary->decode(expected), "haus");
  EXPECT_EQ(vocabulary->id_of("der"), 3);
  EXPECT_EQ(vocabulary->sample("haus", 1e-9, 2, 1).size(), vocabulary->sample("haus", 1e-9, 2, 1).size());
  EXPECT_EQ(sentencepiece_from_bytes(vocabulary->serialized(), "copy")->encode("haus"), expected);
}

TEST(PieceList, OfPiecesThatItLacksIsUnknown) {
  const VocabularyPtr vocabulary = with_list({{"<unk>", "<s>", "</s>", "x"}, ""});
  for (const TokenId id : vocabulary->encode("haus am see")) EXPECT_EQ(id, kUnk);
  for (const TokenId id : vocabulary->encode("</s>")) EXPECT_EQ(id, kUnk);
}

TEST(PieceList, TakesTagsOffTheText) {
  const VocabularyPtr vocabulary = with_list(list_of_haus());
  const Ids haus = vocabulary->encode("haus");
  const auto after = [&](TokenId tag) {
    Ids ids = haus;
    ids.insert(ids.begin(), tag);
    return ids;
  };
  EXPECT_EQ(vocabulary->encode(">>deu<< haus"), after(vocabulary->id_of(">>deu<<")));
  EXPECT_EQ(vocabulary->encode(">>deu<<haus"), after(vocabulary->id_of(">>deu<<")));
  EXPECT_EQ(vocabulary->encode(">>xyz<< haus"), after(kUnk));
  EXPECT_EQ(vocabulary->encode("__de__ haus"), after(vocabulary->id_of("__de__")));
  EXPECT_EQ(vocabulary->encode("deu_Latn haus"), after(vocabulary->id_of("deu_Latn")));
  EXPECT_NE(vocabulary->encode("der haus").front(), vocabulary->id_of("der"));  // a piece, but no tag
  EXPECT_EQ(vocabulary->encode("__de__"), Ids{vocabulary->id_of("__de__")});    // as a prefix
  EXPECT_EQ(vocabulary->decode(after(vocabulary->id_of("__de__"))), "haus");
  const Ids ids = vocabulary->encode(">>deu<< haus haus");
  const std::vector<int32_t> words = vocabulary->words_of(">>deu<< haus haus", ids);
  EXPECT_EQ(words.size(), ids.size());
  EXPECT_EQ(words.front(), 0);
  EXPECT_EQ(words[1], 1);
  EXPECT_EQ(words.back(), 2);
}

TEST(PieceList, StartsLinesThatHaveNoTag) {
  PieceList list = list_of_haus();
  list.start = "__de__";
  const VocabularyPtr vocabulary = with_list(list);
  const TokenId start = vocabulary->id_of("__de__");
  EXPECT_EQ(vocabulary->start(), start);
  EXPECT_EQ(vocabulary->encode("haus").front(), start);
  EXPECT_EQ(vocabulary->encode("deu_Latn haus").front(), vocabulary->id_of("deu_Latn"));
  EXPECT_EQ(vocabulary->encode(" "), Ids{});
  EXPECT_EQ(vocabulary->words_of("haus", vocabulary->encode("haus")).front(), 0);
  EXPECT_EQ(with_list(list_of_haus())->start(), kUnk);
}

TEST(PieceList, MayHaveAModelForTargets) {
  const PieceList list = list_of_haus();
  PieceList of_targets = list;
  of_targets.start = "__de__";
  const std::string both = with_model_for_targets(with_piece_list(small_model(), list), with_piece_list(small_model(), of_targets));
  const Vocabularies vocabularies = for_both_sides(sentencepiece_from_bytes(both, "model"));
  EXPECT_TRUE(vocabularies.shared());
  EXPECT_EQ(vocabularies.src->start(), kUnk);
  EXPECT_EQ(vocabularies.tgt->start(), vocabularies.src->id_of("__de__"));
  EXPECT_EQ(vocabularies.tgt->serialized(), vocabularies.src->serialized());
}

TEST(PieceList, TheModelForTargetsDropsMergesOfItsOwn) {
  const auto bpe = [](int64_t size, const std::string& symbol) {
    const ScratchFolder folder;
    DataOptions training;
    training.spm_type = SubwordType::kBpe;
    training.vocab_size = size;
    training.spm_symbols = {symbol};
    return train_sentencepiece({folder.write("text", sample_text())}, training);
  };
  const std::string of_targets = bpe(90, "<tag>");
  const VocabularyPtr expected = sentencepiece_from_bytes(of_targets, "model"),
                      found = for_both_sides(sentencepiece_from_bytes(with_model_for_targets(bpe(60, "<t>"), of_targets), "model")).tgt;
  for (uint64_t key = 0; key < 20; ++key)
    EXPECT_EQ(found->sample("haus <tag> baum", 0.5, 2, key), expected->sample("haus <tag> baum", 0.5, 2, key)) << key;
}

TEST(PieceList, ThatIsDamagedIsRefused) {
  const auto said = [](const PieceList& list) -> std::string {
    try {
      with_list(list);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(said({{"<unk>", "<s>", "</s>", "a", "a"}, ""}), HasSubstr("\"a\" twice"));
  EXPECT_THAT(said({{"<unk>", "<s>", "</s>", ""}, ""}), HasSubstr("piece 3 of its list is no text"));
  EXPECT_THAT(said({{"<unk>", "<s>", "</s>", "\xFF"}, ""}), HasSubstr("piece 3 of its list is no text"));
  EXPECT_THAT(said({{"<unk>", "<s>", "</s>"}, ""}), HasSubstr("none beside unk, bos and eos"));
  EXPECT_THAT(said({{"<unk>", "<s>", "</s>", "a"}, "b"}), HasSubstr("\"b\", which is not in its list"));
}

TEST(LanguageCode, HasOneOfTwoForms) {
  for (const char* const code : {"__de__", "__ceb__", "__zh_cn__", "deu_Latn"}) EXPECT_TRUE(is_language_code(code)) << code;
  for (const char* const word : {"", "____", "de", "deu_latn", "deu_Latin", "__de_", "__DE__", "Deu_Latn"})
    EXPECT_FALSE(is_language_code(word)) << word;
  EXPECT_EQ(length_of_bracketed_tag(">>deu<< a"), 7U);
  EXPECT_EQ(length_of_bracketed_tag(">> a << b"), 0U);
  EXPECT_EQ(length_of_bracketed_tag("a >>deu<<"), 0U);
}

}  // namespace
}  // namespace lacuna
