#include "program.h"

namespace lacuna {
namespace {

class Learning : public DigitsTest {
 protected:
  /// BLEU on strings never seen, by beam search and sacreBLEU, after a short training.
  double bleu_after_training(const std::function<std::string(std::string)>& translate, const std::vector<std::string>& overrides = {}) {
    write_corpus("train", 6000, 1, translate);
    write_corpus("valid", 100, 2, translate);
    std::vector<std::string> words = {
        "--model.d_model",         "64",   "--model.num_heads",    "4",   "--model.d_ff",          "128", "--train.batch_tokens", "1024",
        "--train.max_steps",       "500",  "--train.valid_every",  "500", "--train.save_every",    "500", "--train.metric",       "bleu",
        "--train.valid_translate", "true", "--train.warmup_steps", "100", "--translate.beam_size", "4"};
    words.insert(words.end(), overrides.begin(), overrides.end());
    EXPECT_EQ(exit_code(train("run", words)), 0) << log();
    return last_record("run", "valid")["bleu"];
  }
};

TEST_F(Learning, CopiesDigits) {
  EXPECT_GT(bleu_after_training(same), 90);
}

TEST_F(Learning, ReversesDigits) {
  EXPECT_GT(bleu_after_training(reversed), 90);
}

TEST_F(Learning, ReversesDigitsWithSparseAttention) {
  EXPECT_GT(bleu_after_training(reversed, {"--model.attention.default", "entmax15"}), 90);
  EXPECT_GT(last_record("run", "attention")["cross.0.sparsity"], 0.1);
}

}  // namespace
}  // namespace lacuna
