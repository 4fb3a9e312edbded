#include <gmock/gmock.h>

#include "../base/scratch_folder.h"
#include "config/load.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Options load_text(const std::string& yaml) {
  const ScratchFolder folder;
  return options_from(load_config_tree({{folder.write("c.yaml", yaml)}, {}}));
}

TEST(Aliases, OfOtherToolkitsAreTakenInKebabAndSnakeCase) {
  const Options options =
      load_text("train: {max-tokens: 123, learn_rate: 0.5}\nmodel: {dim-emb: 64}\ntranslate: {beam-size: 2, lenpen: 0.6}\n");
  EXPECT_EQ(options.train.batch_tokens.value, 123);
  EXPECT_EQ(options.train.lr, 0.5);
  EXPECT_EQ(options.model.d_model, 64);
  EXPECT_EQ(options.translate.beam_size, 2);
  EXPECT_EQ(options.translate.length_penalty, 0.6);
}

TEST(Aliases, GiveOneWarningEach) {
  testing::internal::CaptureStderr();
  load_text("model:\n  d_ff: 64\n  heads: 2\n");
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("c.yaml:3: model.heads is read as model.num_heads"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1);
}

TEST(Aliases, ThatMeanSomethingElseAreRefusedWithWhatToSay) {
  const auto message = [](const std::string& yaml) { return message_of<ConfigError>([&] { load_text(yaml); }); };
  EXPECT_THAT(message("train: {exponential-smoothing: 1e-4}\n"), AllOf(HasSubstr("c.yaml:1"), HasSubstr("exponential-smoothing"),
                                                                       HasSubstr("use train.ema_decay, which is 1 minus that rate")));
  EXPECT_THAT(message("train: {average_decay: 1e-4}\n"), HasSubstr("0.9999"));
  EXPECT_THAT(message("translate: {beam_alpha: 1}\n"), HasSubstr("length_penalty_type: gnmt"));
  EXPECT_THAT(message("data: {remove_bpe: '@@ '}\n"), HasSubstr("use translate.joiner: \"@@\""));
  EXPECT_THAT(message("train: {initial_learning_rate: 0.06325}\n"), HasSubstr("use train.lr, the peak"));
  EXPECT_THAT(message("train: {checkpoint_interval: 500}\n"), HasSubstr("train.save_every and train.valid_every"));
  EXPECT_THAT(message("train: {keep_last_epochs: 10}\n"), HasSubstr("it counts epochs"));
  EXPECT_THAT(message("model: {tied-embeddings-all: true}\n"), HasSubstr("is \"true\"; use model.tie_embeddings: none, decoder"));
  EXPECT_THAT(message("model: {normalize_before: true}\n"), HasSubstr("use model.norm: pre or post"));
  EXPECT_THAT(message("train: {batch_size: 64}\n"), HasSubstr("use train.batch_tokens"));
  EXPECT_THAT(message("train: {fp16: true}\n"), HasSubstr("use train.precision"));
  EXPECT_THAT(message("data: {tgt_vocab_size: 4000}\n"), HasSubstr("data.tgt_spm_model"));
  EXPECT_THAT(message("data: {tsv: true}\n"), HasSubstr("data.tsv is \"true\"; it belongs to a corpus; use data.train: {tsv: FILE}"));
  for (const char* const key : {"pretrained-model", "finetune_from_model"})
    EXPECT_THAT(message(std::string("train: {") + key + ": runs/old}\n"),
                AllOf(HasSubstr(key), HasSubstr("train.init_from and train.reset: [optimizer, lr, data, best]")));
}

TEST(Aliases, ThatHaveNoSectionAreRefusedWithTheirKey) {
  const auto message = [](const std::string& yaml) { return message_of<ConfigError>([&] { load_text(yaml); }); };
  EXPECT_THAT(message("train-sets: [a, b]\n"), HasSubstr("train-sets is a list; use data.train: {src: FILE, tgt: FILE}"));
  EXPECT_THAT(message("dim-emb: 512\n"), HasSubstr("dim-emb is \"512\"; use model.d_model"));
  EXPECT_THAT(message("data: {corpus_1: {path_src: a, path_tgt: b}}\n"), HasSubstr("data.corpus_1 is a map; use data.train: [{src: FILE"));
}

TEST(Aliases, AreTakenOnTheCommandLine) {
  EXPECT_EQ(options_from(load_config_tree({{}, {"--train.max-tokens", "77"}})).train.batch_tokens.value, 77);
}

TEST(Aliases, OfABaseAreOverriddenByOurName) {
  const ScratchFolder folder;
  folder.write("base.yaml", "train: {max_tokens: 10}\n");
  EXPECT_EQ(options_from(load_config_tree({{folder.write("c.yaml", "extends: base.yaml\ntrain: {batch_tokens: 20}\n")}, {}}))
                .train.batch_tokens.value,
            20);
}

TEST(Aliases, BesideOurNameAreAnError) {
  for (const char* yaml : {"train:\n  batch_tokens: 1\n  max_tokens: 2\n", "train:\n  max-tokens: 1\n  max_tokens: 2\n"})
    EXPECT_THAT(message_of<ConfigError>([&] { load_text(yaml); }),
                AllOf(HasSubstr("another spelling of train.batch_tokens"), HasSubstr("c.yaml:")));
}

}  // namespace
}  // namespace lacuna
