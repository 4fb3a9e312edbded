#include <gmock/gmock.h>

#include "../base/scratch_folder.h"
#include "config/load.h"
#include "config/yaml.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

ConfigNode tree_of(const std::string& yaml) {
  ConfigNode tree = parse_yaml(yaml, "c.yaml");
  tree.set_path("");
  return tree;
}

struct Rule {
  const char* name;
  std::string yaml, message;
};

class Validate : public testing::TestWithParam<Rule> {};

TEST_P(Validate, RefusesWhatHasNoMeaning) {
  EXPECT_THAT(message_of<ConfigError>([&] { options_from_yaml(GetParam().yaml, "c.yaml"); }), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, Validate,
    testing::Values(
        Rule{"Device", "device: gpu", "device is \"gpu\"; expected cpu, cuda or cuda:N"},
        Rule{"DeviceNumber", "device: 'cuda:'", "expected cpu, cuda or cuda:N"},
        Rule{"DeviceNumberWord", "device: cuda:x", "expected cpu, cuda or cuda:N"},
        Rule{"DeviceNumberThatIsNone", "device: cuda:-1", "expected cpu, cuda or cuda:N"},
        Rule{"DeviceNumberWithAZeroBeforeIt", "device: cuda:00", "expected cpu, cuda or cuda:N, where N is 0 to 999"},
        Rule{"DeviceNumberOfManyDigits", "device: cuda:99999999999999999999", "expected cpu, cuda or cuda:N"},
        Rule{"EndlessEpoch", "data: {train: [{src: a, tgt: b, weight: 1e17}]}", "at most a million"},
        Rule{"OneSpmModel", "data: {src_spm_model: a}", "data.src_spm_model and data.tgt_spm_model go together"},
        Rule{"ThreeSpmModels", "data: {spm_model: a, src_spm_model: b, tgt_spm_model: c}", "data.spm_model is for both sides"},
        Rule{"OneVocab", "data: {tokenizer: none, tgt_vocab: a}", "data.src_vocab and data.tgt_vocab go together"},
        Rule{"NoVocab", "data: {tokenizer: none}", "it needs a vocabulary file"},
        Rule{"SampledWords", "data: {tokenizer: none, vocab: v, spm_alpha: 0.1}", "it must be 0"},
        Rule{"RatioOfNoPair", "data: {max_length_ratio: 0.5}", "data.max_length_ratio is 0.5, which no pair is within; at least 1"},
        Rule{"VocabForSentencePiece", "data: {vocab: v}", "set data.tokenizer: none"},
        Rule{"HalfACorpus", "data: {train: [{src: a}]}",
             "data.train: a corpus needs both src and tgt, or tsv in place of them; src is \"a\", tgt is \"\""},
        Rule{"NoCorpus", "data: {valid: {name: n}}", "data.valid: a corpus needs both src and tgt, or tsv in place of them"},
        Rule{"TwiceACorpus", "data: {train: [{src: a, tgt: b, tsv: c}]}",
             "data.train: tsv is \"c\", which stands in place of src and tgt; remove it, or src \"a\" and tgt \"b\""},
        Rule{"TsvAndHalfACorpus", "data: {train: [{tgt: b, tsv: c}]}", "remove it, or src \"\" and tgt \"b\""},
        Rule{"ColumnsOfTwoFiles", "data: {train: [{src: a, tgt: b, columns: [1, 3]}]}", "the columns of a and b are not read"},
        Rule{"OneColumn", "data: {train: [{tsv: a, columns: [2]}]}", "the columns of a are 1 numbers; expected two, source and target"},
        Rule{"PrefixOfTwoLines", "data: {test: {tsv: a, src_prefix: \"b\\nc\"}}",
             "the src_prefix of a is \"b\nc\"; expected UTF-8 without tabs"},
        Rule{"Heads", "model: {d_model: 100, num_heads: 3}", "model.num_heads is 3; it must divide model.d_model, which is 100"},
        Rule{"SpacingOfLearnedPositions", "model: {positions: learned, position_spacing: tensor2tensor}",
             "model.position_spacing is \"tensor2tensor\", and only sinusoidal positions have a spacing; remove it"},
        Rule{"StartOfNoPositions", "model: {positions: none, position_start: 2}",
             "model.position_start is 2, and only sinusoidal positions start elsewhere than at 0; remove it"},
        Rule{"RopeOfOddHeads", "model: {d_model: 9, num_heads: 3, positions: rope}",
             "a head has model.d_model / model.num_heads = 3; choose an even number"},
        Rule{"SpacingOfOneFrequency", "model: {d_model: 2, num_heads: 1, position_spacing: tensor2tensor}",
             "divides by model.d_model / 2 - 1; model.d_model is 2, expected at least 4"},
        Rule{"UnknownActivation", "model: {activation: silu}", "model.activation is \"silu\"; expected one of relu, gelu, swish, swiglu"},
        Rule{"UnknownSpacing", "model: {position_spacing: marian}",
             "model.position_spacing is \"marian\"; expected one of paper, tensor2tensor"},
        Rule{"UnknownStart", "model: {decoder_start: bos}", "model.decoder_start is \"bos\"; expected one of token, zero"},
        Rule{"NegativeStart", "model: {position_start: -1}", "model.position_start is \"-1\"; expected a number"},
        Rule{"LargeEpsilon", "model: {norm_epsilon: 1}", "model.norm_epsilon is \"1\"; expected a number"},
        Rule{"BiasThatIsNoAnswer", "model: {output_bias: some}", "model.output_bias is \"some\"; expected"},
        Rule{"OddWidth", "model: {d_model: 9, num_heads: 3}", "sinusoidal positions need an even one"},
        Rule{"TiedSeparateVocabularies", "data: {shared_vocab: false}",
             "needs one vocabulary for both sides; set it to decoder or none, or data.shared_vocab: true"},
        Rule{"TiedTwoModels", "data: {src_spm_model: a, tgt_spm_model: b}", "set it to decoder or none, or give data.spm_model alone"},
        Rule{"TiedTwoLists", "data: {tokenizer: none, src_vocab: a, tgt_vocab: b}", "set it to decoder or none, or give data.vocab alone"},
        Rule{"EndlessCosine", "train: {schedule: cosine}", "train.schedule is \"cosine\", which falls until"},
        Rule{"EndlessLinear", "train: {schedule: linear}", "train.schedule is \"linear\", which falls until"},
        Rule{"WarmupToTheLastStep", "train: {schedule: linear, warmup_steps: 100, max_steps: 100}",
             "train.warmup_steps is 100; expected fewer than train.max_steps, which is 100 and ends the linear schedule"},
        Rule{"WarmupBeyondTheDecay", "train: {schedule: cosine, warmup_steps: 30, decay_steps: 20, max_steps: 100}",
             "train.warmup_steps is 30; expected fewer than train.decay_steps, which is 20 and ends the cosine schedule"},
        Rule{"NoamWithoutWarmup", "train: {schedule: noam, warmup_steps: 0}", "needs a warm-up"},
        Rule{"PlateauWithoutValidation", "train: {schedule: plateau}", "needs a validation set"},
        Rule{"PatienceWithoutValidation", "train: {patience: 3}", "early stopping needs data.valid"},
        Rule{"BleuWithoutTranslation", "train: {valid_translate: false}", "set train.valid_translate: true, or train.metric: loss"},
        Rule{"UnknownReset", "train: {init_from: a, reset: [optimiser]}", "Did you mean \"optimizer\"?"},
        Rule{"NBest", "translate: {n_best: 6, beam_size: 5}", "translate.n_best is 6; at most translate.beam_size, which is 5"},
        Rule{"Lengths", "translate: {min_length: 9, max_length: 8}", "at most translate.max_length, which is 8"},
        Rule{"SymbolThatIsNoPiece", "data: {spm_symbols: ['<b t>']}", "data.spm_symbols holds \"<b t>\", which cannot be a piece"},
        Rule{"SymbolTwice", "data: {spm_symbols: [<bt>, <bt>]}", "is there twice"},
        Rule{"SymbolThatIsThereAnyway", "data: {spm_symbols: [</s>]}", "data.spm_symbols holds \"</s>\", which the vocabulary has anyway"},
        Rule{"SymbolWithoutALetter", "data: {spm_symbols: ['']}", "which is empty"},
        Rule{"SymbolThatIsAByte", "data: {spm_symbols: [<0x41>]}", "which may be the name of a byte"},
        Rule{"RulesOfAModelThatIsThere", "data: {spm_model: m, src_normalization: nfkc}", "has rules of its own"},
        Rule{"SymbolsOfAModelThatIsThere", "data: {spm_model: m, spm_symbols: [<bt>]}", "of a SentencePiece model that is trained here"},
        Rule{"JoinerOfPiecesThatJoinThemselves", "translate: {joiner: '@@'}",
             "translate.joiner is \"@@\"; it joins pieces of data.tokenizer: none"},
        Rule{"JoinerWithASpace", "{data: {tokenizer: none, vocab: v}, translate: {joiner: '@@ '}}", "without the space behind it"},
        Rule{"LengthsBeyondThePositions", "{model: {positions: learned, max_positions: 8}, translate: {min_length: 9}}",
             "translate.min_length is 9; at most model.max_positions, which is 8"}),
    [](const auto& parameter) { return parameter.param.name; });

TEST(Validate, TakesWhatHasMeaning) {
  for (const char* yaml : {"data: {shared_vocab: false}\nmodel: {tie_embeddings: decoder}", "data: {tokenizer: none, vocab: v}",
                           "model: {d_model: 9, num_heads: 3, positions: learned}", "translate: {n_best: 9, sampling: full}",
                           "train: {schedule: cosine, warmup_steps: 9, max_steps: 10}", "train: {warmup_steps: 100, max_steps: 10}",
                           "data: {valid: {src: a, tgt: b}}\ntrain: {schedule: plateau, patience: 2}",
                           "data: {train: [{tsv: a, columns: [2, 2], src_prefix: <2de>}], valid: {src: a, tgt: b, columns: [1, 2]}}"})
    EXPECT_NO_THROW(options_from_yaml(yaml, "c.yaml")) << yaml;
}

TEST(Validate, RefusesOversightsOfUsersAlone) {
  for (const auto& [yaml, message] :
       {std::pair("data: {tokenizer: none, vocab: v, spm_model: m}", "the SentencePiece model m is not read"),
        std::pair("{data: {tokenizer: none, vocab: v, src_spm_model: m, tgt_spm_model: n}, model: {tie_embeddings: none}}",
                  "model m is not"),
        std::pair("{data: {tokenizer: none, vocab: v, src_vocab: s, tgt_vocab: t}, model: {tie_embeddings: none}}", "is for both sides"),
        std::pair("run: ~/runs/a", "run is \"~/runs/a\", and ~ is no folder here; write ${HOME}/runs/a")}) {
    const ConfigNode tree = tree_of(yaml);
    const Options options = options_from(tree);
    EXPECT_THAT(message_of<ConfigError>([&] { refuse_oversights(options, tree); }), AllOf(StartsWith("c.yaml:1: "), HasSubstr(message)))
        << yaml;
  }
  for (const char* yaml : {"data: {tokenizer: none, vocab: v}", "{run: a~/b, data: {spm_model: m}}"}) {
    const ConfigNode tree = tree_of(yaml);
    EXPECT_NO_THROW(refuse_oversights(options_from(tree), tree)) << yaml;
  }
}

TEST(Validate, SaysWhereAValueWasWritten) {
  for (const auto& [yaml, message] :
       {std::pair("seed: 1\ndevice: gpu", "c.yaml:2: device is \"gpu\""),
        std::pair("model:\n  d_model: 100\n  num_heads: 3", "c.yaml:3: model.num_heads is 3; it must divide"),
        std::pair("seed: 1\nmodel:\n  d_model: 99", "c.yaml:3: model.num_heads is "),  // which is the default
        std::pair("data:\n  train:\n    - {src: a, tgt: b}\n    - {src: a}", "c.yaml:4: data.train: a corpus needs both"),
        std::pair("data:\n  valid: {src: a}", "c.yaml:2: data.valid: a corpus needs both"),
        std::pair("data:\n  train:\n    - src: a\n      tgt: b\n      tsv: c", "c.yaml:5: data.train: tsv is \"c\", which"),
        std::pair("data:\n  test:\n    src: a\n    tgt: b\n    columns: [2, 1]", "c.yaml:5: data.test: the columns of a and b"),
        std::pair("data:\n  train:\n    - tsv: c\n      src_prefix: \"\\t\"", "c.yaml:4: data.train: the src_prefix of c"),
        std::pair("data:\n  spm_symbols: ['']", "c.yaml:2: data.spm_symbols holds"),
        std::pair("data:\n  src_vocab: ''\n  tgt_vocab: v", "c.yaml:3: data.src_vocab and"),
        std::pair("train:\n  lr: 1\n  reset: [optimiser]", "c.yaml:3: train.reset holds"),
        std::pair("translate:\n\n  n_best: 9", "c.yaml:3: translate.n_best is 9")})
    EXPECT_THAT(message_of<ConfigError>([&yaml = yaml] { options_from_yaml(yaml, "c.yaml"); }), StartsWith(message)) << yaml;
  EXPECT_THAT(message_of<ConfigError>([] {
                options_from(load_config_tree({.files = {}, .overrides = {"--train.patience", "3"}}));
              }),
              StartsWith("command line (--train.patience): train.patience is 3"));
}

TEST(Validate, SaysWhichFlagDoesNotFitAFile) {
  const ScratchFolder folder;
  const std::string file = folder.write("c.yaml", "model:\n  d_model: 96\n  num_heads: 3\ntranslate: {n_best: 4}\n");
  const auto error_with = [&](const std::string& flag, const std::string& value) {
    return message_of<ConfigError>([&] { options_from(load_config_tree({.files = {file}, .overrides = {flag, value}})); });
  };
  EXPECT_THAT(error_with("--model.d_model", "100"), StartsWith("command line (--model.d_model): model.num_heads is 3; it must divide"));
  EXPECT_THAT(error_with("--translate.beam_size", "2"), StartsWith("command line (--translate.beam_size): translate.n_best is 4"));
  EXPECT_THAT(error_with("--data.shared_vocab", "false"), StartsWith("command line (--data.shared_vocab): model.tie_embeddings is"));
}

TEST(Validate, OfATrainedModelSaysWhichFlagDoesNotFitIt) {
  EXPECT_THAT(message_of<ConfigError>([] {
                with_overrides(Options(), {"--translate.min_length=9", "--translate.max_length=8"});
              }),
              StartsWith("command line (--translate.min_length): translate.min_length is 9"));
  Options several;
  several.translate.n_best = 4;
  EXPECT_THAT(message_of<ConfigError>([&] {
                with_overrides(several, {"--translate.beam_size", "3"});
              }),
              StartsWith("command line (--translate.beam_size): translate.n_best is 4"));
}

TEST(Validate, TakesTheConfigurationOfAMachineWithOtherDevices) {
  for (const std::string device : {"cuda:3", "cuda:0", "cuda:10", "cuda"})
    EXPECT_EQ(options_from_yaml("device: " + device, "runs/x/last/config.yaml").device, device);
}

}  // namespace
}  // namespace lacuna
