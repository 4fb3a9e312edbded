#include "ablation/variant.h"

#include <gmock/gmock.h>

#include "../base/scratch_folder.h"
#include "config/yaml.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> kTypes = {"softmax", "topk", "rela", "entmax"};

std::vector<Variant> read(const std::string& yaml, const std::string& file = "v.yaml") {
  ConfigNode map = parse_yaml(yaml, file);
  map.set_path("variants");
  return read_variants(map);
}

std::vector<Variant> parse(const std::string& text, const std::vector<Variant>& defined = {}) {
  return parse_variants(text, "--attention", defined, kTypes);
}

std::vector<std::string> names(const std::vector<Variant>& variants) {
  std::vector<std::string> all;
  for (const Variant& variant : variants) all.push_back(variant.name);
  return all;
}

/// What stands under model.attention, as YAML without its last line break.
std::string attention(const Variant& variant) {
  const std::string yaml = variant.overlay.find("model")->find("attention")->to_yaml();
  return yaml.substr(0, yaml.size() - 1);
}

std::string config_error(const std::string& yaml) {
  return message_of<ConfigError>([&] { read(yaml); });
}
std::string usage_error(const std::string& text, const std::vector<Variant>& defined = {}) {
  return message_of<UsageError>([&] { parse(text, defined); });
}

TEST(CommandLineVariants, AreTypes) {
  const auto variants = parse("softmax, rela");
  EXPECT_THAT(names(variants), ElementsAre("softmax", "rela"));
  EXPECT_EQ(attention(variants[1]), "rela");
}

TEST(CommandLineVariants, AreTypesWithTheirOptions) {
  const auto variants = parse("topk: {k: 4},{type: topk, k: 8}");
  EXPECT_THAT(names(variants), ElementsAre("topk-k=4", "topk-k=8"));
  EXPECT_EQ(attention(variants[0]), "type: topk\nk: 4");
}

TEST(CommandLineVariants, MayBeNamed) {
  const auto variants = parse("mine: {type: topk, k: 4}, crossed: {cross: rela}, plain: softmax");
  EXPECT_THAT(names(variants), ElementsAre("mine", "crossed", "plain"));
  EXPECT_EQ(attention(variants[1]), "cross: rela");
}

TEST(CommandLineVariants, AreDefinedOnesBeforeTypes) {
  const auto defined = read("rela: {type: rela, norm: none}\nother: softmax\n");
  EXPECT_EQ(attention(parse("rela", defined)[0]), "type: rela\nnorm: none");
  EXPECT_THAT(names(parse("other,topk", defined)), ElementsAre("other", "topk"));
}

TEST(CommandLineVariants, AreConfigurationFiles) {
  const ScratchFolder folder;
  const auto variants = parse(folder.write("leaky.yaml", "model: {attention: rela}\ntrain: {lr: 1e-4}\n"));
  EXPECT_EQ(variants[0].name, "leaky");
  EXPECT_EQ(attention(variants[0]), "rela");
  EXPECT_EQ(variants[0].overlay.find("train")->find("lr")->text(), "1e-4");
}

TEST(CommandLineVariants, AnUnknownWordNamesWhatIsKnownAndTheNearest) {
  EXPECT_THAT(usage_error("softmax,sofmax"),
              AllOf(HasSubstr("\"sofmax\""), HasSubstr("known types: softmax"), HasSubstr("Did you mean \"softmax\"?")));
  EXPECT_THAT(usage_error("gatd", read("gated: rela")), AllOf(HasSubstr("known variants: gated"), HasSubstr("Did you mean \"gated\"?")));
}

TEST(CommandLineVariants, OneThatIsThereTwiceIsRefused) {
  EXPECT_THAT(usage_error("rela,softmax,rela"), HasSubstr("\"rela\" is there twice"));
}

TEST(CommandLineVariants, NothingBetweenCommasIsRefused) {
  EXPECT_THAT(usage_error("rela,,softmax"), HasSubstr("expected names or types between commas"));
  EXPECT_THAT(usage_error(""), HasSubstr("expected names"));
}

TEST(CommandLineVariants, ABracketThatStaysOpenIsRefused) {
  EXPECT_THAT(message_of<ConfigError>([] { parse("topk: {k: 4, softmax"); }), HasSubstr("command line (--attention)"));
}

TEST(CommandLineVariants, ErrorsNameTheFlag) {
  EXPECT_THAT(message_of<UsageError>([] { parse_variants("sofmax", "--compare", {}, kTypes); }), HasSubstr("--compare: \"sofmax\""));
  EXPECT_THAT(message_of<ConfigError>([] { parse_variants("[rela]", "--compare", {}, kTypes); }),
              HasSubstr("(--compare): --compare is a list"));
}

TEST(AttentionOfAVariant, IsWhatStandsUnderModelAttention) {
  const ConfigNode attention = attention_of(parse("{encoder_self: {type: softmax, pattern: {type: local, window: no}}}")[0], "--compare");
  const ConfigNode* window = attention.find("encoder_self")->find("pattern")->find("window");
  EXPECT_THAT(message_of<ConfigError>([&] { window->fail("expected a number"); }),
              HasSubstr("model.attention.encoder_self.pattern.window is \"no\"; expected a number"));
}

TEST(AttentionOfAVariant, ThatChangesMoreIsRefused) {
  for (const char* const yaml :
       {"a: {attention: rela, train: {lr: 1}}\n", "a: {attention: rela, model: {d_ff: 8}}\n", "a: {train: {lr: 1}}\n"})
    EXPECT_THAT(message_of<UsageError>([&] { attention_of(read(yaml)[0], "--compare"); }),
                HasSubstr("--compare: \"a\" changes something else than model.attention"));
}

TEST(FileVariants, KeepTheirOrder) {
  EXPECT_THAT(names(read("b: softmax\na: {type: topk, k: 2}\n")), ElementsAre("b", "a"));
}

TEST(FileVariants, HaveALongForm) {
  const auto variants = read("a: softmax\nb: {attention: rela, train: {max_epochs: 6}, seeds: [1, 2], against: a}\n");
  EXPECT_EQ(attention(variants[1]), "rela");
  EXPECT_EQ(variants[1].overlay.find("train")->find("max_epochs")->text(), "6");
  EXPECT_THAT(variants[1].seeds, ElementsAre(1, 2));
  EXPECT_EQ(variants[1].against, "a");
}

TEST(FileVariants, NameFilesRelativeToTheirOwn) {
  const ScratchFolder folder;
  folder.write("gelu.yaml", "model: {attention: rela}\n");
  const auto variants = read("gelu: gelu.yaml\nlong: {extends: gelu.yaml, train: {lr: 1}}\n", folder / "v.yaml");
  EXPECT_EQ(attention(variants[0]), "rela");
  EXPECT_EQ(attention(variants[1]), "rela");
  EXPECT_NE(variants[1].overlay.find("train"), nullptr);
}

TEST(FileVariants, AFileThatIsNotThereIsNamed) {
  EXPECT_THAT(config_error("a: none.yaml\n"), AllOf(HasSubstr("v.yaml:1: variants.a"), HasSubstr("there is no file none.yaml")));
}

TEST(FileVariants, MayNotChangeWhatAllShare) {
  const ScratchFolder folder;
  folder.write("data.yaml", "data: {vocab_size: 100}\n");
  EXPECT_THAT(message_of<ConfigError>([&] { read("a: data.yaml\n", folder / "v.yaml"); }),
              HasSubstr("changes model, train, translate only"));
  EXPECT_THAT(config_error("a: {attention: rela, data: {vocab_size: 100}}\n"), HasSubstr("unknown key variants.a.data"));
}

TEST(FileVariants, ANameThatMakesNoFolderIsRefused) {
  for (const char* const name : {"a/b", "..", "-a", "a b"})
    EXPECT_THAT(config_error(std::string("\"").append(name).append("\": rela\n")), HasSubstr("is not a name for a variant")) << name;
}

TEST(FileVariants, AreComparedWithOnesAbove) {
  EXPECT_THAT(config_error("a: {attention: rela, against: b}\nb: softmax\n"), HasSubstr("expected a variant that stands above it"));
}

TEST(FileVariants, ThatAreNoMapAreRefused) {
  EXPECT_THAT(config_error("- rela\n"), HasSubstr("expected a map from names"));
  EXPECT_THAT(config_error("a: [rela]\n"), HasSubstr("expected what stands under model.attention"));
}

TEST(FileVariants, SeedsAreWholeNumbers) {
  EXPECT_THAT(config_error("a: {attention: rela, seeds: [x]}\n"), HasSubstr("expected a whole number"));
  EXPECT_THAT(config_error("a: {attention: rela, seeds: -1}\n"), HasSubstr("expected at least 0"));
}

TEST(FileVariants, OfOurConfigurationsAreRead) {
  for (const char* const name : {"bundled", "multi30k"}) {
    const std::string file = std::string(LACUNA_SOURCE_DIR "/configs/ablations/") + name + ".yaml";
    EXPECT_GE(read_variants(*read_yaml_file(file).find("variants")).size(), 14u) << name;
  }
}

TEST(NameOfChoice, TellsTypeAndOptions) {
  const auto name = [](const std::string& yaml) { return name_of_choice(parse_yaml_value(yaml, "")); };
  EXPECT_EQ(name("softmax"), "softmax");
  EXPECT_EQ(name("{type: entmax, alpha: 1.3}"), "entmax-alpha=1.3");
  EXPECT_EQ(name("{pattern: {type: local, window: 8}, type: rela}"), "rela-pattern=local-window=8");
  EXPECT_EQ(name("{cross: {type: topk, k: 2}, default: rela}"), "cross=topk-k=2-default=rela");
  EXPECT_EQ(name("{type: softmax, pattern: {heads: [full, local]}}"), "softmax-pattern=heads=full+local");
}

}  // namespace
}  // namespace lacuna
