#include "text/normalization.h"

#include <gmock/gmock.h>

#include "../base/scratch_folder.h"
#include "base/error.h"
#include "text/spm_trainer.h"
#include "text/vocabulary.h"

namespace lacuna {
namespace {

using ::testing::HasSubstr;

constexpr const char* kOdd[] = {"½ Liter…", "5 m²", "oﬃce", "你好，世界", "น้ำ", "全角　空白", "«\u00A0Bonjour\u00A0»", "№ 7 ™"};

SpmText text_of(bool is_target) {
  const auto read = [](const auto& use) {
    for (int i = 0; i < 20; ++i)
      for (const char* const line : kOdd) use(line);
    return 0;
  };
  return {.name = "text", .read = read, .is_target = is_target};
}

Vocabularies trained(const DataOptions& options) {
  return for_both_sides(sentencepiece_from_bytes(train_sentencepiece({text_of(false), text_of(true)}, options), "model"));
}

DataOptions small() {
  DataOptions options;
  options.vocab_size = 60;
  return options;
}

TEST(Normalizer, NormalizesAsSentencePieceDoes) {
  const Normalizer nfkc("nmt_nfkc"), folded("nfkc_cf"), identity("identity");
  EXPECT_EQ(nfkc("ｏﬃce 5 m² e\u0301"), "office 5 m2 \u00E9");
  EXPECT_EQ(folded("Ｈaus ﬁT"), "haus fit");
  for (const char* const line : kOdd) EXPECT_EQ(identity(line), line);
  EXPECT_EQ(nfkc(""), "");
}

TEST(Normalizer, OfARuleThatIsNoneIsAnError) {
  EXPECT_THAT(message_of<DataError>([] { Normalizer("nfd"); }), HasSubstr("no normalization \"nfd\""));
}

TEST(Normalization, KeepsTargetsAndMakesSourcesOneForm) {
  const Vocabularies both = trained(small());
  EXPECT_TRUE(both.shared());
  EXPECT_EQ(both.src->serialized(), both.tgt->serialized());
  EXPECT_EQ(both.src->size(), both.tgt->size());
  EXPECT_EQ(both.src->normalization(), "nmt_nfkc");
  EXPECT_EQ(both.tgt->normalization(), "identity");
  for (const char* const line : kOdd) EXPECT_EQ(both.tgt->decode(both.tgt->encode(line)), line);
  EXPECT_EQ(both.src->encode("oﬃce 5 m²"), both.src->encode("office 5 m2"));
  for (const TokenId id : both.src->encode("office 5 m2")) EXPECT_NE(id, kUnk);
}

TEST(Normalization, OfBothSidesByOneRuleIsInOneModel) {
  DataOptions options = small();
  options.tgt_normalization = "nmt_nfkc";
  const Vocabularies both = trained(options);
  EXPECT_EQ(both.src, both.tgt);
  EXPECT_EQ(both.tgt->decode(both.tgt->encode("oﬃce")), "office");
  EXPECT_FALSE(model_for_targets(both.tgt->serialized()));
}

TEST(Normalization, OfATargetModelIsItsOwn) {
  const std::string model = train_sentencepiece({text_of(true)}, small());
  EXPECT_EQ(rule_of(model), "identity");
  EXPECT_EQ(rule_of(train_sentencepiece({text_of(false)}, small())), "nmt_nfkc");
}

TEST(Normalization, OfBytesThatAreNoModelIsNone) {
  for (const std::string bytes : {"", "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", "\x1A\x7F", "\x1A\x02\x0A\x7F", "\xC2\x0C\xFF"}) {
    EXPECT_EQ(rule_of(bytes), "");
    EXPECT_FALSE(model_for_targets(bytes));
  }
}

}  // namespace
}  // namespace lacuna
