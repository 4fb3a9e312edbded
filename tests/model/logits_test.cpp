#include "model/logits.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "emulated_kernels.h"

namespace lacuna {
namespace {

TEST(Logits, AreLogSoftmax) {
  at::manual_seed(1);
  const Tensor values = at::randn({5, 301}) * 4;
  EXPECT_TRUE(at::allclose(Logits(values).log_probs(), at::log_softmax(values, 1), 1e-5, 1e-5));
}

TEST(Logits, GiveTheBestInOrder) {
  at::manual_seed(1);
  const Logits logits(at::randn({3, 100}));
  const Tensor log_probs = logits.log_probs();
  for (const int64_t k : {1, 10, 70, 100}) {  // few and many go different ways
    const BestTokens best = logits.best(k);
    const auto [values, tokens] = log_probs.topk(k, 1);
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < k; ++j) {
        EXPECT_EQ(best.tokens[static_cast<size_t>(i * k + j)], tokens[i][j].item<int64_t>());
        EXPECT_EQ(best.log_probs[static_cast<size_t>(i * k + j)], values[i][j].item<float>());
      }
  }
}

TEST(Logits, GiveTheLowerIdOfEquals) {
  Tensor values = at::zeros({1, 200});
  values[0][150] = 1;
  for (const int64_t k : {4, 100}) {
    const BestTokens best = Logits(values).best(k);
    EXPECT_EQ(std::vector<int32_t>(best.tokens.begin(), best.tokens.begin() + 4), (std::vector<int32_t>{150, 0, 1, 2}));
  }
}

TEST(Logits, OfHiddenRowsAreTheirProducts) {
  at::manual_seed(1);
  const auto table = std::make_shared<const PackedWeight>(at::randn({301, 20}));
  const Tensor hidden = at::randn({300, 20});  // more rows than are worked out at a time
  const Logits logits(hidden, table), plain(table->multiply(hidden, {}));
  EXPECT_EQ(logits.vocab_size(), 301);
  EXPECT_TRUE(logits.log_probs().equal(plain.log_probs()));
  for (const int64_t k : {1, 10, 70, 301}) {
    EXPECT_EQ(logits.best(k).tokens, plain.best(k).tokens);
    EXPECT_EQ(logits.best(k).log_probs, plain.best(k).log_probs);
  }
}

TEST(Logits, OfOnlySomeRowsAreTheirs) {
  at::manual_seed(1);
  const auto table = std::make_shared<const PackedWeight>(at::randn({301, 20}));
  const Logits logits(at::randn({60, 20}), table);
  const std::vector<int32_t> some = {3, 58};
  EXPECT_TRUE(logits.log_probs(&some).equal(logits.log_probs().index_select(0, at::tensor({3, 58}))));
}

TEST(Logits, GiveWhatIsAskedForBesideTheBest) {
  at::manual_seed(1);
  const Logits logits(at::randn({3, 200}));
  const BestTokens best = logits.best(2, {7, 199, 0});
  EXPECT_EQ(best.asked, logits.of({7, 199, 0}));
  EXPECT_EQ(best.tokens, logits.best(2).tokens);
}

TEST(Logits, ThatAreNoNumbersGiveNoTokens) {
  for (const int64_t size : {3, 500}) {
    const BestTokens best = Logits(at::full({1, size}, std::numeric_limits<float>::quiet_NaN())).best(2);
    EXPECT_EQ(best.tokens, std::vector<int32_t>(2, std::numeric_limits<int32_t>::max()));
  }
}

TEST(Logits, ThatAreNoNumbersAreRefused) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NO_THROW(require_numbers(at::tensor({-1.f, -std::numeric_limits<float>::infinity()})));
  EXPECT_THROW(require_numbers(at::tensor({-1.f, nan})), CheckpointError);
  EXPECT_NO_THROW(require_number(-1, 3));
  EXPECT_THROW(require_number(nan, 3), CheckpointError);
  EXPECT_THROW(require_number(-1, std::numeric_limits<int32_t>::max()), CheckpointError);
}

TEST(Logits, GiveChosenTokens) {
  at::manual_seed(1);
  const Logits logits(at::randn({2, 50}));
  const std::vector<float> chosen = logits.of({7, 49});
  EXPECT_EQ(chosen[0], logits.log_probs()[0][7].item<float>());
  EXPECT_EQ(chosen[1], logits.log_probs()[1][49].item<float>());
}

TEST(Logits, AreFoundOnAGpuAsOnTheCpu) {
  at::manual_seed(1);
  const auto table = std::make_shared<const PackedWeight>(at::randn({301, 20}));
  const Tensor hidden = at::randn({60, 20}), bias = at::randn({301});
  const Logits logits(hidden, table, bias);
  const std::vector<int32_t> rows = {3, 58, 59, 0}, asked = {7, 300, 0, 1};
  BestTokens expected, found;
  logits.find_best(rows, 14, asked, expected);
  const std::vector<int32_t> best_of_all = logits.best(3).tokens;
  const std::vector<float> of_all = logits.of(std::vector<int32_t>(60, 5));
  EXPECT_FALSE(logits.are_on_gpu());

  const gpu::Emulation emulated;
  EXPECT_TRUE(logits.are_on_gpu());
  logits.find_best(rows, 14, asked, found);
  EXPECT_EQ(found.tokens, expected.tokens);
  for (size_t i = 0; i < found.log_probs.size(); ++i) EXPECT_NEAR(found.log_probs[i], expected.log_probs[i], 1e-5);
  for (size_t i = 0; i < asked.size(); ++i) EXPECT_NEAR(found.asked[i], expected.asked[i], 1e-5);
  EXPECT_EQ(logits.best(3).tokens, best_of_all);
  const std::vector<float> of_all_there = logits.of(std::vector<int32_t>(60, 5));
  for (size_t i = 0; i < of_all.size(); ++i) EXPECT_NEAR(of_all_there[i], of_all[i], 1e-5);
}

TEST(Logits, OfTokensThatCanNotBeGiveMinusInfinity) {
  const Tensor values = at::tensor({0.f, -std::numeric_limits<float>::infinity(), 1.f}).view({1, 3});
  const BestTokens best = Logits(values).best(3);
  EXPECT_EQ(best.tokens, (std::vector<int32_t>{2, 0, 1}));
  EXPECT_EQ(best.log_probs[2], -std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace lacuna
