#include "config/load.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "../base/scratch_folder.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

Options load(const std::vector<std::string>& files, const std::vector<std::string>& overrides = {}) {
  return options_from(load_config_tree({files, overrides}));
}

/// The attention section of one file and overrides, as YAML.
std::string attention(const std::string& yaml, const std::vector<std::string>& overrides) {
  const ScratchFolder folder;
  return load_config_tree({{folder.write("c.yaml", yaml)}, overrides}).find("model")->find("attention")->to_yaml();
}

std::string usage_error(const std::vector<std::string>& overrides) {
  return message_of<UsageError>([&] { load({}, overrides); });
}

TEST(Files, LaterOnesWinKeyByKey) {
  const ScratchFolder folder;
  const Options options =
      load({folder.write("a.yaml", "seed: 2\ntrain: {lr: 0.1, warmup_steps: 7}\n"), folder.write("b.yaml", "train: {lr: 0.2}\n")});
  EXPECT_EQ(options.seed, 2);
  EXPECT_EQ(options.train.lr, 0.2);
  EXPECT_EQ(options.train.warmup_steps.value, 7);
}

TEST(Files, SectionsWithNothingInThemChangeNothing) {
  const ScratchFolder folder;
  const Options options =
      load({folder.write("a.yaml", "train: {lr: 0.1}\nmodel: {d_model: 96, attention: rela}\ndata: {valid: [{src: a, tgt: b}]}\n"),
            folder.write("b.yaml", "train:\n  # lr: 0.2\nmodel:\n  attention:\ndata:\n  valid:\n")});
  EXPECT_EQ(options.train.lr, 0.1);
  EXPECT_EQ(options.model.d_model, 96);
  EXPECT_THAT(options.model.attention.to_yaml(), HasSubstr("rela"));
  EXPECT_TRUE(options.data.valid.empty()) << "a value, which null clears";
}

TEST(Files, DoNotPutAValueInThePlaceOfASection) {
  const ScratchFolder folder;
  const std::string base = folder.write("a.yaml", "train: {lr: 0.1}\n"), over = folder.write("b.yaml", "train: 5\n");
  EXPECT_THAT(message_of<ConfigError>([&] {
                load({base, over}, {"--train.max_steps", "7"});
              }),
              AllOf(HasSubstr("b.yaml:1"), HasSubstr("train is \"5\"; expected a map")));
}

TEST(Files, ListsReplaceLists) {
  const ScratchFolder folder;
  const Options options = load({folder.write("a.yaml", "data: {train: [{src: a, tgt: b}, {src: c, tgt: d}]}\n"),
                                folder.write("b.yaml", "data: {train: [{src: e, tgt: f}]}\n")});
  ASSERT_EQ(options.data.train.size(), 1u);
  EXPECT_EQ(options.data.train[0].src, "e");
}

/// The error of two configurations, one extending a third.
std::string error_of_files(const std::string& base, const std::string& first, const std::string& later,
                           const std::vector<std::string>& overrides = {}) {
  const ScratchFolder folder;
  folder.write("base.yaml", base);
  const std::vector<std::string> files = {folder.write("first.yaml", "extends: base.yaml\n" + first), folder.write("later.yaml", later)};
  const std::string message = message_of<ConfigError>([&] { load(files, overrides); });
  return message.starts_with(folder / "") ? message.substr((folder / "").size()) : message;
}

TEST(Files, ErrorsNameTheOneInWhichTheKeyStands) {
  EXPECT_THAT(error_of_files("train:\n  lr: fast\n", "train: {warmup_steps: 3}\n", "train: {max_steps: 5}\n"),
              StartsWith("base.yaml:2: train.lr is \"fast\""));
  EXPECT_THAT(error_of_files("train: {lr: 1}\n", "train:\n  lr: fast\n", "train: {max_steps: 5}\n"),
              StartsWith("first.yaml:3: train.lr is \"fast\""));
  EXPECT_THAT(error_of_files("train: {lr: fast}\n", "", "train:\n\n  lr: faster\n"), StartsWith("later.yaml:3: train.lr is \"faster\""));
  EXPECT_THAT(error_of_files("train: {lr: fast}\n", "", "train: {lr: 1}\n", {"--train.lr", "x"}),
              StartsWith("command line (--train.lr): train.lr is \"x\""));
  EXPECT_THAT(error_of_files("train:\n  learning: 1\n", "train: {lr: 1}\n", "train: {lr: 2}\n"),
              StartsWith("base.yaml:2: unknown key train.learning"));
  EXPECT_THAT(error_of_files("data:\n  train: {src: a, tgt: b}\n", "", "data: {train: {weight: 1e9}}\n"),
              StartsWith("later.yaml:1: data.train: the weight of a and b is"));
  EXPECT_THAT(error_of_files("", "data:\n  train: [{src: a, tgt: b}]\n", "data:\n  valid:\n  - src: a\n"),
              StartsWith("later.yaml:3: data.valid: a corpus needs both src and tgt"));
}

TEST(Files, ErrorsOfTwoKeysNameBothFiles) {
  const std::string base = "model:\n  num_heads: 8\n";
  EXPECT_THAT(error_of_files(base, "", "model:\n  d_model: 99\n"),
              AllOf(StartsWith("base.yaml:2: model.num_heads is 8; it must divide model.d_model, which is 99 (model.d_model: "),
                    HasSubstr("later.yaml:2)")));
  EXPECT_THAT(error_of_files(base, "", "", {"--model.d_model", "99"}),
              AllOf(StartsWith("command line (--model.d_model): model.num_heads is 8; "), HasSubstr("(model.num_heads: "),
                    HasSubstr("base.yaml:2)")));
  EXPECT_THAT(error_of_files(base + "  d_model: 99\n", "", ""), testing::EndsWith("which is 99"));
}

TEST(Files, MayBeEmpty) {
  const ScratchFolder folder;
  EXPECT_EQ(to_yaml(load({folder.write("a.yaml", "# nothing yet\n")})), to_yaml(Options()));
}

TEST(Files, ThatAreNoMapAreAnError) {
  const ScratchFolder folder;
  const std::string file = folder.write("a.yaml", "- 1\n");
  EXPECT_THAT(message_of<ConfigError>([&] { load({file}); }), HasSubstr(":1: expected `key: value` lines"));
}

TEST(Files, WithANameTooLongAreAnError) {
  EXPECT_THAT(message_of<DataError>([] { load({std::string(5000, 'a')}); }), HasSubstr("File name too long"));
}

TEST(Extends, IsRelativeToTheFileThatSaysIt) {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder.path() / "sub");
  folder.write("base.yaml", "seed: 5\ntrain: {lr: 0.3}\n");
  folder.write("sub/middle.yaml", "extends: ../base.yaml\ntrain: {warmup_steps: 9}\n");
  const Options options = load({folder.write("top.yaml", "extends: sub/middle.yaml\nseed: 6\n")});
  EXPECT_EQ(options.seed, 6);
  EXPECT_EQ(options.train.lr, 0.3);
  EXPECT_EQ(options.train.warmup_steps.value, 9);
}

TEST(Extends, OfSeveralFilesLetsTheLaterWin) {
  const ScratchFolder folder;
  folder.write("a.yaml", "seed: 1\nthreads: 1\n");
  folder.write("b.yaml", "seed: 2\n");
  const Options options = load({folder.write("c.yaml", "extends: [a.yaml, b.yaml]\n")});
  EXPECT_EQ(options.seed, 2);
  EXPECT_EQ(options.threads, 1);
}

TEST(Extends, OfAMissingFileIsAnErrorWithItsPlace) {
  const ScratchFolder folder;
  const std::string file = folder.write("a.yaml", "seed: 1\nextends: none.yaml\n");
  EXPECT_THAT(message_of<ConfigError>([&] { load({file}); }), AllOf(StartsWith(file + ":2: extends"), HasSubstr("there is no file")));
}

TEST(Extends, InACircleIsAnError) {
  const ScratchFolder folder;
  folder.write("b.yaml", "extends: a.yaml\n");
  const std::string file = folder.write("a.yaml", "extends: b.yaml\n");
  EXPECT_THAT(message_of<ConfigError>([&] { load({file}); }), AllOf(HasSubstr("extends itself"), HasSubstr("b.yaml")));
}

TEST(Extends, ReadsNoMoreFilesThanAConfigurationHas) {
  const ScratchFolder folder;
  const auto level = [&](int i) { return "level" + std::to_string(i) + ".yaml"; };
  folder.write(level(0), "seed: 5\n");
  for (int i = 1; i <= 99; ++i) folder.write(level(i), "extends: " + level(i - 1) + "\n");
  EXPECT_EQ(load({folder / level(99)}).seed, 5) << "one below the other: 100 files";
  for (int i = 1; i <= 16; ++i) folder.write(level(i), "extends: [" + level(i - 1) + ", " + level(i - 1) + "]\n");
  EXPECT_EQ(load({folder / level(5)}).seed, 5) << "63 files";
  EXPECT_THAT(message_of<ConfigError>([&] { load({folder / level(16)}); }),
              AllOf(HasSubstr("level"), HasSubstr("more than 100 files are read by way of `extends`; let each base be extended once")));
}

TEST(Overrides, WinOverFiles) {
  const ScratchFolder folder;
  const std::string file = folder.write("a.yaml", "seed: 2\ntrain: {lr: 0.1, warmup_steps: 7}\n");
  const Options options = load({file}, {"--train.lr", "1e-3", "--seed=4", "--translate.block_tokens", "[a, b]"});
  EXPECT_EQ(options.train.lr, 1e-3);
  EXPECT_EQ(options.train.warmup_steps.value, 7);
  EXPECT_EQ(options.seed, 4);
  EXPECT_EQ(options.translate.block_tokens, (std::vector<std::string>{"a", "b"}));
}

TEST(Overlays, WinOverFilesAndLoseToOverrides) {
  const ScratchFolder folder;
  const std::string file = folder.write("a.yaml", "train: {lr: 0.1, warmup_steps: 7, max_steps: 1}\n");
  const ConfigNode overlay = read_config_file(folder.write("b.yaml", "train: {lr: 0.2, warmup_steps: 8}\n"));
  const Options options = options_from(load_config_tree({.files = {file}, .overrides = {"--train.lr", "0.3"}, .overlays = {overlay}}));
  EXPECT_EQ(options.train.lr, 0.3);
  EXPECT_EQ(options.train.warmup_steps.value, 8);
  EXPECT_EQ(options.train.max_steps, 1);
}

TEST(Overrides, MayBeNegativeOrEmpty) {
  EXPECT_THAT(message_of<ConfigError>([] { load({}, {"--seed", "-1"}); }), HasSubstr("at least 0"));
  EXPECT_EQ(load({}, {"--data.cache="}).data.cache, "");
}

TEST(Overrides, ThatAreNotUnderstoodAreUsageErrors) {
  EXPECT_THAT(usage_error({"train.lr", "1"}),
              HasSubstr("\"train.lr\" is not understood; expected --section.key value (a file follows its flag: see --help)"));
  EXPECT_THAT(usage_error({"--train.lr"}), HasSubstr("--train.lr: the value is missing"));
  EXPECT_THAT(usage_error({"--train..lr", "1"}), HasSubstr("expected --section.key value"));
  EXPECT_THAT(usage_error({"--train.", "1"}), HasSubstr("expected --section.key value"));
  EXPECT_THAT(usage_error({"--"}), HasSubstr("not understood"));
}

TEST(Overrides, AreNamedInErrors) {
  const std::string message = message_of<ConfigError>([] { load({}, {"--train.lr", "fast"}); });
  EXPECT_THAT(message, StartsWith("command line (--train.lr): train.lr is \"fast\"; expected a number"));
}

TEST(Overrides, OfACheckpointsOptionsChangeThoseAlone) {
  Options options;
  options.train.lr = 0.7;
  const Options changed = with_overrides(options, {"--translate.beam", "9"});
  EXPECT_EQ(changed.translate.beam_size, 9);
  EXPECT_EQ(changed.train.lr, 0.7);
}

TEST(Overrides, OfACheckpointChangeSearchAndAttentionAlone) {
  Options options;
  EXPECT_EQ(with_overrides(options, {"--model.attention.cross", "topk"}).model.attention.to_line(), "{cross: topk}");
  for (const std::string key : {"model.d_ff", "model.encoder_layers", "train.lr", "seed", "data.max_length"})
    EXPECT_THAT(message_of<ConfigError>([&] {
                  with_overrides(options, {"--" + key, "1"});
                }),
                AllOf(StartsWith("command line (--" + key + "): " + key + " is \"1\"; a trained model keeps that"),
                      HasSubstr("keys of translate and of model.attention")));
  EXPECT_THAT(message_of<ConfigError>([&] {
                with_overrides(options, {"--model.attentoin", "topk"});
              }),
              HasSubstr("did you mean model.attention?"));
}

TEST(Preset, OfALaterSourceTakesThePlaceOfWrittenSizes) {
  const ScratchFolder folder;
  const std::string file = folder.write("a.yaml", "model: {preset: tiny, d_model: 96, d_ff: 100, encoder_d_ff: 70, dropout: 0.3}\n");
  EXPECT_EQ(load({file}).model.d_model, 96);
  const Options options = load({file}, {"--model.preset", "small", "--model.d_ff", "200"});
  EXPECT_EQ(options.model.d_model, 256);
  EXPECT_EQ(options.model.d_ff, 200);
  EXPECT_EQ(options.model.encoder_d_ff, 70);
  EXPECT_EQ(options.model.encoder_layers, 3);
  EXPECT_EQ(options.model.dropout, 0.3);
}

TEST(Preset, ThatIsNotNamedLeavesTheSizesBelowIt) {
  const ScratchFolder folder;
  const std::string file = folder.write("a.yaml", "model: {preset: tiny, d_model: 96, d_ff: 100}\n");
  for (const std::string empty : {"", "''", "null"}) {
    const Options options = load({file}, {"--model.preset=" + empty});
    EXPECT_EQ(options.model.preset, "");
    EXPECT_EQ(options.model.d_model, 96);
    EXPECT_EQ(options.model.d_ff, 100);
  }
}

TEST(Attention, OptionsGoBelowABareWord) {
  EXPECT_EQ(attention("model: {attention: {cross: topk}}", {"--model.attention.cross.k", "16"}), "cross:\n  type: topk\n  k: 16\n");
}

TEST(Attention, OptionsMergeIntoTheSameType) {
  EXPECT_EQ(attention("model: {attention: {cross: {type: topk, k: 8, norm: rms}}}", {"--model.attention.cross.k", "16"}),
            "cross:\n  type: topk\n  k: 16\n  norm: rms\n");
}

TEST(Attention, AnotherTypeReplacesTheEntry) {
  EXPECT_EQ(attention("model: {attention: {cross: {type: topk, k: 8}}}", {"--model.attention.cross.type", "entmax"}),
            "cross:\n  type: entmax\n");
  EXPECT_EQ(attention("model: {attention: {cross: {type: topk, k: 8}}}", {"--model.attention.cross", "rela"}), "cross: rela\n");
}

TEST(Attention, TheSameTypeNamedAnewIsANewChoice) {
  EXPECT_EQ(attention("model: {attention: {cross: {type: topk, ratio: 4, floor: 2}}}", {"--model.attention.cross", "{type: topk, k: 16}"}),
            "cross:\n  type: topk\n  k: 16\n");
  EXPECT_EQ(attention("model: {attention: {cross: {type: topk, pattern: {heads: [full, local]}}}}",
                      {"--model.attention.cross.pattern.type", "full"}),
            "cross:\n  type: topk\n  pattern:\n    type: full\n");
}

TEST(Attention, OptionsOfASiteGoToEachOfItsLayers) {
  EXPECT_EQ(attention("model: {attention: {cross: {default: topk, layers: {0: {type: topk, k: 4}, 2: topk}}}}",
                      {"--model.attention.cross.sparsify", "train"}),
            "cross:\n  default:\n    type: topk\n    sparsify: train\n  layers:\n    0:\n      type: topk\n      k: 4\n"
            "      sparsify: train\n    2:\n      type: topk\n      sparsify: train\n");
  EXPECT_EQ(attention("model: {attention: {cross: {layers: {0: topk}}}}", {"--model.attention.cross.k", "4"}),
            "cross:\n  layers:\n    0:\n      type: topk\n      k: 4\n  default:\n    k: 4\n");
}

TEST(Attention, OptionsOfASiteGoBesideOneChoiceForAll) {
  EXPECT_EQ(attention("model: {attention: topk}", {"--model.attention.cross.sparsify", "train"}),
            "default: topk\ncross:\n  sparsify: train\n");
  EXPECT_EQ(attention("model: {attention: {default: topk, cross: rela}}", {"--model.attention.default.k", "4"}),
            "default:\n  type: topk\n  k: 4\ncross: rela\n");
}

TEST(Attention, TypeAndOptionsComeInAnyOrder) {
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{"--model.attention.cross.k", "4", "--model.attention.cross.type", "topk"},
        {"--model.attention.cross", "topk", "--model.attention.cross.k", "4"}})
    EXPECT_THAT(attention("model: {attention: {cross: softmax}}", order), AllOf(HasSubstr("type: topk"), HasSubstr("k: 4")));
}

TEST(Attention, ASiteGoesBesideOneChoiceForAll) {
  EXPECT_EQ(attention("model: {attention: rela}", {"--model.attention.cross", "topk"}), "default: rela\ncross: topk\n");
  EXPECT_EQ(attention("model: {attention: {type: topk, k: 4}}", {"--model.attention.cross", "softmax"}),
            "default:\n  type: topk\n  k: 4\ncross: softmax\n");
}

TEST(Attention, ALayerGoesBesideTheChoiceOfItsSite) {
  EXPECT_EQ(attention("model: {attention: {cross: rela}}", {"--model.attention.cross.layers.0", "softmax"}),
            "cross:\n  default: rela\n  layers:\n    0: softmax\n");
}

TEST(Attention, OneChoiceForAllReplacesThoseOfSites) {
  EXPECT_EQ(attention("model: {attention: {default: rela, cross: topk}}", {"--model.attention", "{type: topk, k: 2}"}),
            "type: topk\nk: 2\n");
}

TEST(Variables, AreFilledIn) {
  setenv("LACUNA_TEST_ROOT", "/some where", 1);
  EXPECT_EQ(load({}, {"--run", "${LACUNA_TEST_ROOT}/a/${LACUNA_TEST_ROOT}"}).run, "/some where/a//some where");
  setenv("LACUNA_TEST_ROOT", "${LACUNA_TEST_ROOT}", 1);
  EXPECT_EQ(load({}, {"--run", "${LACUNA_TEST_ROOT}"}).run, "${LACUNA_TEST_ROOT}") << "once only";
  unsetenv("LACUNA_TEST_ROOT");
}

TEST(Variables, AreFilledInInTheNamesOfBases) {
  const ScratchFolder folder;
  folder.write("base.yaml", "seed: 5\n");
  setenv("LACUNA_TEST_ROOT", (folder / "").c_str(), 1);
  EXPECT_EQ(load({folder.write("a.yaml", "extends: ${LACUNA_TEST_ROOT}/base.yaml\n")}).seed, 5);
  unsetenv("LACUNA_TEST_ROOT");
}

TEST(Variables, ThatAreNotSetOrNotClosedAreErrorsWithTheirPlace) {
  const ScratchFolder folder;
  const std::string unset = folder.write("a.yaml", "data:\n  train: [{src: '${LACUNA_TEST_UNSET}/a', tgt: b}]\n");
  EXPECT_THAT(message_of<ConfigError>([&] { load({unset}); }),
              AllOf(StartsWith(unset + ":2: data.train[0].src"), HasSubstr("LACUNA_TEST_UNSET is not set")));
  const std::string open = folder.write("b.yaml", "run: '${HOME/a'\n");
  EXPECT_THAT(message_of<ConfigError>([&] { load({open}); }), HasSubstr(":1: run is \"${HOME/a\"; ${ has no }"));
}

}  // namespace
}  // namespace lacuna
