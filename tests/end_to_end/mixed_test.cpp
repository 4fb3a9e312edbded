#include <signal.h>

#include <fstream>

#include "program.h"

namespace lacuna {
namespace {

using testing::HasSubstr;

/// A model with another type, pattern and norm in each layer and site.
class MixedAttention : public DigitsTest {
 protected:
  MixedAttention() {
    write_corpus("train", 1000, 1, reversed);
    write_corpus("valid", 50, 2, reversed);
  }

  std::vector<std::string> options() const {
    return {"--model.encoder_layers",
            "3",
            "--model.decoder_layers",
            "3",
            "--train.average_last",
            "3",
            "--train.max_steps",
            "150",
            "--model.attention",
            "{encoder_self: {layers: {0: {type: topk, k: 3, pattern: {type: local, window: 3}}, 1: rela,"
            "                         2: {type: entmax, alpha: learned, norm: layer}}},"
            " decoder_self: {layers: {0: {type: sparsemax, pattern: {type: strided, window: 2, stride: 3}, norm: rms},"
            "                         1: {type: entmax, alpha: 1.3, pattern: {heads: [full, {type: atrous, stride: 2}]}},"
            "                         2: {type: rela, activation: leaky_relu, norm: {type: rms, gain_init: ones},"
            "                             pattern: {type: fixed, block: 4}}}},"
            " cross: {layers: {0: softmax, 1: entmax15, 2: {type: topk, ratio: 2, floor: 2, sparsify: train}}}}"};
  }
  std::string weights_of(const std::string& checkpoint) const { return bytes_of(path(checkpoint) / "model.safetensors"); }
};

TEST_F(MixedAttention, ResumesBitForBitAfterAKill) {
  ASSERT_EQ(exit_code(train("whole", options())), 0) << log();
  Program program(train("killed", options()), path("log"));
  wait_for_step(program, "killed", 35);
  program.send(SIGKILL);
  EXPECT_EQ(program.wait(), 128 + SIGKILL);
  EXPECT_EQ(exit_code(train("killed", options())), 0) << log();
  EXPECT_THAT(log(), HasSubstr("going on after step"));
  EXPECT_EQ(weights_of("killed/last"), weights_of("whole/last"));
  EXPECT_EQ(bytes_of(path("killed/last/trainer.safetensors")), bytes_of(path("whole/last/trainer.safetensors")));
  EXPECT_EQ(weights_of("killed/averaged"), weights_of("whole/averaged"));
}

TEST_F(MixedAttention, IsAveragedTranslatesAndScores) {
  ASSERT_EQ(exit_code(train("run", options())), 0) << log();
  EXPECT_EQ(exit_code({"average", "-o", path("mean").string(), path("run").string(), "--last", "3"}), 0) << log();
  EXPECT_EQ(weights_of("mean"), weights_of("run/averaged"));

  const std::string model = path("mean").string(), src = path("valid.src").string(), out = path("out").string();
  EXPECT_EQ(exit_code({"translate", "-m", model, "-i", src, "-o", out}), 0) << log();
  EXPECT_EQ(lines_of("out"), 50);
  EXPECT_EQ(exit_code({"score", "-m", model, "--src", src, "--tgt", path("valid.tgt").string(), "-o", path("scores").string()}), 0)
      << log();
  EXPECT_EQ(lines_of("scores"), 50);
  EXPECT_TRUE(last_record("run", "attention").contains("encoder_self.2.alpha.0"));
}

TEST_F(MixedAttention, TakesOtherAttentionWhenItTranslates) {
  ASSERT_EQ(exit_code(train("run", options())), 0) << log();
  const std::vector<std::string> translate = {"translate",
                                              "-m",
                                              path("run").string(),
                                              "-i",
                                              path("valid.src").string(),
                                              "-o",
                                              path("out").string(),
                                              "--model.attention.cross.layers.2.sparsify",
                                              "always",
                                              "--model.attention.encoder_self.layers.2",
                                              "{type: entmax15, norm: layer}"};
  EXPECT_EQ(exit_code(translate), 0) << log();
  EXPECT_THAT(log(), HasSubstr("attention of the checkpoint: encoder_self: {0: "));
  EXPECT_THAT(log(), HasSubstr("sparsify: train}}; used here: encoder_self: {0: "));
  EXPECT_THAT(log(), HasSubstr("left out: encoder.layers.2.self_attention.numbers.alpha_logit"));
  EXPECT_EQ(lines_of("out"), 50);
}

TEST_F(MixedAttention, WithMasksTranslatesAndScoresByTheStepOfItsCheckpoint) {
  ASSERT_EQ(exit_code(train("run", {"--model.attention", kCalibrated})), 0) << log();
  const std::string model = path("run/last").string(), src = path("valid.src").string(), tgt = path("valid.tgt").string();
  // One by one, all at once, and a few at a time, joined by the next while some are under way.
  for (const char* const tokens : {"1", "3000", "40"})
    ASSERT_EQ(exit_code({"translate", "-m", model, "-i", src, "-o", path(tokens).string(), "--batch-tokens", tokens}), 0) << log();
  EXPECT_EQ(lines_of("1"), 50);
  EXPECT_EQ(bytes_of(path("3000")), bytes_of(path("1")));
  EXPECT_EQ(bytes_of(path("40")), bytes_of(path("1")));

  ASSERT_EQ(exit_code({"score", "-m", model, "--src", src, "--tgt", tgt, "--json", "-o", path("scores").string()}), 0) << log();
  std::ifstream lines(path("scores"));
  double log_prob = 0, num_tokens = 0;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json score = nlohmann::json::parse(line);
    log_prob += score["log_prob"].get<double>();
    num_tokens += static_cast<double>(score["tokens"].size());
  }
  EXPECT_NEAR(last_record("run", "valid")["loss"].get<double>(), -log_prob / num_tokens, 1e-5);
}

}  // namespace
}  // namespace lacuna
