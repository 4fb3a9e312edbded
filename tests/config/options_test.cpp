#include "config/options.h"

#include <gmock/gmock.h>

#include "../base/scratch_folder.h"
#include "config/load.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::StrEq;

std::string error_of(const std::string& yaml) {
  return message_of<ConfigError>([&] { options_from_yaml(yaml, "c.yaml"); });
}

TEST(Options, AnUnknownKeyIsNamedWithTheNearestOne) {
  EXPECT_THAT(error_of("model:\n  d_modle: 12\n"),
              StrEq("c.yaml:2: unknown key model.d_modle; did you mean model.d_model? (lacuna train --help-options lists all keys)"));
  EXPECT_THAT(error_of("trian: {lr: 1}\n"), StartsWith("c.yaml:1: unknown key trian; did you mean train?"));
  EXPECT_THAT(error_of("data: {train: [{source: a}]}\n"), HasSubstr("data.train[0].source"));
}

TEST(Options, AnUnknownKeyFarFromAllHasNoSuggestion) {
  EXPECT_THAT(error_of("zzzzzzzz: 1\n"), Not(HasSubstr("did you mean")));
}

TEST(Options, ASectionMustBeAMap) {
  EXPECT_THAT(error_of("model: 5\n"), HasSubstr("c.yaml:1: model is \"5\"; expected a map of options"));
  EXPECT_THAT(error_of("train: [1]\n"), HasSubstr("train is a list; expected a map of options"));
}

TEST(Options, WholeNumbersAreChecked) {
  for (const char* value : {"many", "1.5", "99999999999999999999", "0x10", "nan", "inf", "''", "[1]", "{a: 1}", "", "1_000"})
    EXPECT_THAT(error_of(std::string("model:\n  d_ff: ") + value + "\n"),
                AllOf(StartsWith("c.yaml:2: model.d_ff is "), HasSubstr("expected a whole number")))
        << value;
  EXPECT_EQ(options_from_yaml("model: {d_ff: 1e3}", "c").model.d_ff, 1000);
  EXPECT_EQ(options_from_yaml("model: {d_ff: +7}", "c").model.d_ff, 7);
}

TEST(Options, NumbersAreChecked) {
  for (const char* value : {"fast", "1.5x", "nan", "inf", "1e999", "", "[0.1]"})
    EXPECT_THAT(error_of(std::string("train: {lr: ") + value + "}\n"), HasSubstr("expected a number")) << value;
}

TEST(Options, OfOlderCheckpointsThatTranslateInBf16x3TranslateInFp32) {
  EXPECT_EQ(options_from_yaml("translate: {precision: bf16x3, beam_size: 3}", "c").translate.precision, Precision::kFp32);
  EXPECT_EQ(options_from_yaml("translate: {precision: bf16x3, beam_size: 3}", "c").translate.beam_size, 3);
  EXPECT_EQ(options_from_yaml("train: {precision: bf16x3}", "c").train.precision, Precision::kBf16x3);
}

TEST(Options, NumbersHaveNoUnits) {
  EXPECT_THAT(error_of("train: {valid_every: 500u}\n"),
              HasSubstr("train.valid_every is \"500u\"; expected a whole number without a unit (`lacuna train --help-options` says what"));
  EXPECT_THAT(error_of("train: {max_epochs: 10e}\n"), HasSubstr("train.max_epochs is \"10e\"; expected a whole number without a unit"));
  EXPECT_THAT(error_of("train: {max_hours: 1.5h}\n"), HasSubstr("train.max_hours is \"1.5h\"; expected a number without a unit"));
  EXPECT_THAT(error_of("train: {batch_tokens: 4k}\n"), HasSubstr("--help-options` says what it counts), or auto"));
  for (const char* other : {"1.5", "0x10", "1_000", "many", "''"})
    EXPECT_THAT(error_of(std::string("train: {max_epochs: ") + other + "}\n"), Not(HasSubstr("unit"))) << other;
}

TEST(Options, RangesAreChecked) {
  EXPECT_THAT(error_of("model: {dropout: 1}\n"), HasSubstr("model.dropout is \"1\"; expected a number at least 0 and below 1"));
  EXPECT_THAT(error_of("train: {lr: 0}\n"), HasSubstr("train.lr is \"0\"; expected a number more than 0"));
  EXPECT_THAT(error_of("data: {character_coverage: 0.5}\n"), HasSubstr("from 0.9 to 1"));
  EXPECT_THAT(error_of("data: {vocab_size: 3}\n"), HasSubstr("at least 16"));
  EXPECT_THAT(error_of("train: {batch_tokens: 0}\n"), HasSubstr("at least 1"));
  EXPECT_THAT(error_of("model: {encoder_layers: 100000000}\n"), HasSubstr("model.encoder_layers"));
}

TEST(Options, YesAndNoAreChecked) {
  EXPECT_THAT(error_of("data: {shared_vocab: maybe}\n"), HasSubstr("data.shared_vocab is \"maybe\"; expected true or false"));
  for (const char* yes : {"true", "True", "TRUE", "yes", "on"})
    EXPECT_TRUE(options_from_yaml(std::string("train: {overwrite: ") + yes + "}", "c").train.overwrite);
}

TEST(Options, WordsAreChecked) {
  EXPECT_THAT(
      error_of("train: {schedule: cosin}\n"),
      AllOf(HasSubstr("expected one of inverse_sqrt, noam, linear, cosine, plateau, constant"), HasSubstr("Did you mean \"cosine\"?")));
  EXPECT_THAT(error_of("train: {schedule: [noam]}\n"), HasSubstr("train.schedule is a list; expected one of"));
}

TEST(Options, TextIsChecked) {
  EXPECT_THAT(error_of("run: {a: b}\n"), HasSubstr("run is a map; expected text"));
  EXPECT_THAT(error_of("translate: {block_tokens: {a: b}}\n"), HasSubstr("expected a list of words"));
  EXPECT_THAT(error_of("translate: {block_tokens: [[a]]}\n"), HasSubstr("translate.block_tokens[0] is a list; expected text"));
}

TEST(Options, CorporaAreOneMapOrAList) {
  EXPECT_EQ(options_from_yaml("data: {valid: {src: a, tgt: b}}", "c").data.valid.size(), 1u);
  EXPECT_THAT(error_of("data: {valid: a.de}\n"),
              HasSubstr("data.valid is \"a.de\"; expected {src: FILE, tgt: FILE} or {tsv: FILE}, or a list of such: [{...}, ...]"));
  EXPECT_THAT(error_of("data: {valid: [a.de]}\n"), HasSubstr("data.valid[0] is \"a.de\"; expected {src: FILE, tgt: FILE} or {tsv: FILE}"));
}

TEST(Options, ACorpusMayBeOneFileOfColumns) {
  const CorpusOptions plain = options_from_yaml("data: {train: {tsv: a.tsv}}", "c").data.train[0];
  EXPECT_EQ(plain.tsv, "a.tsv");
  EXPECT_EQ(plain.columns, (std::vector<int64_t>{1, 2}));
  const CorpusOptions turned = options_from_yaml("data: {train: [{tsv: a.tsv, columns: [3, 1], src_prefix: <bt>}]}", "c").data.train[0];
  EXPECT_EQ(turned.columns, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(turned.src_prefix, "<bt>");
}

TEST(Options, ColumnsAreNumbersFromOne) {
  EXPECT_THAT(error_of("data:\n  train: [{tsv: a, columns: 2}]\n"),
              HasSubstr("c.yaml:2: data.train[0].columns is \"2\"; expected a list of numbers, each at least 1: [1, 2]"));
  EXPECT_THAT(error_of("data: {train: [{tsv: a, columns: [1, b]}]}\n"),
              HasSubstr("data.train[0].columns[1] is \"b\"; expected a whole number"));
  EXPECT_THAT(error_of("data: {train: [{tsv: a, columns: [0, 1]}]}\n"),
              HasSubstr("data.train[0].columns[0] is \"0\"; expected a number at least 1"));
}

TEST(Options, ANumberOrAWordTakesBoth) {
  EXPECT_FALSE(options_from_yaml("train: {batch_tokens: auto}", "c").train.batch_tokens.value);
  EXPECT_THAT(error_of("train: {batch_tokens: atuo}\n"), HasSubstr("auto"));
  EXPECT_THAT(error_of("train: {batch_tokens: [1]}\n"), HasSubstr("or auto"));
}

TEST(Presets, AreOverriddenByKeysBesideThem) {
  const ModelOptions model = options_from_yaml("model: {d_ff: 100, preset: base}", "c").model;
  EXPECT_EQ(model.d_model, 512);
  EXPECT_EQ(model.num_heads, 8);
  EXPECT_EQ(model.d_ff, 100);
  EXPECT_EQ(model.encoder_layers, 6);
}

TEST(Presets, ThatAreUnknownAreErrors) {
  EXPECT_THAT(error_of("model: {preset: bigg}\n"),
              AllOf(HasSubstr("known presets: tiny, small, iwslt, base, big"), HasSubstr("Did you mean \"big\"?")));
}

TEST(OptionsHelp, NamesEveryKeyWithItsDefaultAndRange) {
  const std::string help = options_help();
  EXPECT_THAT(help, HasSubstr("model.d_model  (default 256; at least 1)\n    width of the residual stream\n"));
  EXPECT_THAT(help, HasSubstr("translate.sampling  (default none; one of none, full, top_k, top_p)"));
  EXPECT_THAT(help, HasSubstr("train.batch_tokens  (default 4096; at least 1)"));
}

TEST(OptionsHelp, NamesTheKeysOfACorpusOnce) {
  const std::string help = options_help();
  EXPECT_THAT(help, HasSubstr("data.train[].columns  (default [1, 2]; at least 1)\n"));
  EXPECT_THAT(help, HasSubstr("data.train[].src_prefix  (default: none)\n"));
  EXPECT_THAT(help, Not(HasSubstr("data.valid[]")));
}

}  // namespace
}  // namespace lacuna
