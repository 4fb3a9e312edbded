#include "config/attention_variant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lacuna {
namespace {

using testing::HasSubstr;

std::vector<std::string> names(const std::string& text) {
  std::vector<std::string> all;
  for (const AttentionVariant& variant : read_attention_variants(text, "--compare")) all.push_back(variant.name);
  return all;
}

std::string error_of(const std::string& text) {
  try {
    read_attention_variants(text, "--compare");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(AttentionVariant, NamesStandBetweenCommas) {
  EXPECT_EQ(names("topk, rela,sparsemax"), (std::vector<std::string>{"topk", "rela", "sparsemax"}));
}

TEST(AttentionVariant, MapsHoldCommasOfTheirOwn) {
  EXPECT_EQ(names("{type: entmax, alpha: learned},rela"), (std::vector<std::string>{"{type: entmax, alpha: learned}", "rela"}));
}

TEST(AttentionVariant, MapsMayNest) {
  const auto variants = read_attention_variants("{encoder_self: {type: softmax, pattern: {type: local, window: 4}}}", "--compare");
  ASSERT_EQ(variants.size(), 1u);
  const ConfigNode* site = variants[0].attention.find("encoder_self");
  ASSERT_NE(site, nullptr);
  EXPECT_EQ(site->find("pattern")->find("window")->text(), "4");
  EXPECT_EQ(variants[0].name, "{encoder_self: {type: softmax, pattern: {type: local, window: 4}}}");
}

TEST(AttentionVariant, ErrorsOfAValueNameFlagAndKey) {
  const auto variants = read_attention_variants("{type: topk, k: no}", "--compare");
  EXPECT_THAT([&] { variants[0].attention.find("k")->fail("expected a number"); },
              testing::ThrowsMessage<ConfigError>(HasSubstr("--compare: model.attention.k is \"no\"; expected a number")));
}

TEST(AttentionVariant, NothingIsRefused) {
  EXPECT_THAT(error_of(""), HasSubstr("--compare: \"\" names no attention"));
}

TEST(AttentionVariant, AnEntryThatIsNoNameIsRefused) {
  EXPECT_THAT(error_of("topk,[rela]"), HasSubstr("expected attention types"));
}

TEST(AttentionVariant, AnEntryThatIsThereTwiceIsRefused) {
  EXPECT_THAT(error_of("topk,rela,topk"), HasSubstr("topk is there twice"));
}

TEST(AttentionVariant, BracketsThatDoNotMatchAreRefused) {
  EXPECT_THAT(error_of("{type: topk"), HasSubstr("--compare: not YAML"));
}

}  // namespace
}  // namespace lacuna
