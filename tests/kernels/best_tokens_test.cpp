#include "kernels/best_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "emulated_kernels.h"

namespace lacuna {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

BestTokens best_of(const at::Tensor& logits, int64_t k, const std::vector<int32_t>& asked = {}) {
  BestTokens best;
  gpu::find_best(logits, k, asked, best);
  return best;
}

/// The k tokens with the largest logits, the lower one of equals first.
std::vector<int32_t> sorted_tokens(const at::Tensor& row, int64_t k) {
  const at::Tensor values = row.contiguous();
  const float* const logits = values.const_data_ptr<float>();
  std::vector<int32_t> tokens(static_cast<size_t>(values.numel()));
  std::iota(tokens.begin(), tokens.end(), 0);
  std::ranges::stable_sort(tokens, [=](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  tokens.resize(static_cast<size_t>(k));
  return tokens;
}

/// Numbers so far apart that no two become equal as log-probabilities; some are equal from the start.
at::Tensor drawn_logits(int64_t rows, int64_t columns) {
  return at::randint(-600, 600, {rows, columns}, at::kFloat) / 64;
}

void expect_the_best(const at::Tensor& logits, int64_t k, at::Device device) {
  SCOPED_TRACE(testing::Message() << logits.size(1) << " tokens, the best " << k);
  const auto last = static_cast<int32_t>(logits.size(1) - 1);
  const std::vector<int32_t> asked(static_cast<size_t>(logits.size(0)), last);
  const BestTokens best = best_of(logits.to(device), k, asked);
  const at::Tensor log_probs = at::log_softmax(logits, 1);
  ASSERT_EQ(best.k, k);
  ASSERT_EQ(std::ssize(best.asked), logits.size(0));
  for (int64_t row = 0; row < logits.size(0); ++row) {
    const auto first = static_cast<size_t>(row * k);
    const std::vector<int32_t> tokens(best.tokens.begin() + row * k, best.tokens.begin() + (row + 1) * k);
    EXPECT_EQ(tokens, sorted_tokens(logits[row], k));
    for (size_t i = 0; i < tokens.size(); ++i) EXPECT_NEAR(best.log_probs[first + i], log_probs[row][tokens[i]].item<float>(), 2e-5);
    EXPECT_NEAR(best.asked[static_cast<size_t>(row)], log_probs[row][last].item<float>(), 2e-5);
  }
}

void expect_the_best_of_many_sizes(at::Device device) {
  at::manual_seed(7);
  for (const int64_t columns : {1, 3, 255, 256, 257, 1000, 8000, 32000})
    for (const int64_t k : {1, 10, 14, 256})
      if (k <= columns) expect_the_best(drawn_logits(3, columns), k, device);
}

/// Rows in which more tokens are as good as the k-th than the kernel can put aside.
void expect_the_best_of_equals(at::Device device) {
  at::Tensor few = at::zeros({2, 5000});
  few[0][4321] = 1;
  few[1].slice(0, 0, 5000, 2) = kNever;
  for (const int64_t k : {1, 14, 256}) expect_the_best(few, k, device);
}

TEST(BestTokens, AreThoseOfASort) {
  const gpu::Emulation emulated;
  expect_the_best_of_many_sizes(at::kCPU);
}

TEST(BestTokens, AreTheLowerOnesOfEquals) {
  const gpu::Emulation emulated;
  expect_the_best_of_equals(at::kCPU);
}

/// Emulated threads take turns in another order each time.
TEST(BestTokens, DoNotDependOnTheOrderOfThreads) {
  const gpu::Emulation emulated;
  at::manual_seed(7);
  const at::Tensor logits = at::randn({4, 3000}) * 4;
  const BestTokens first = best_of(logits, 14), again = best_of(logits, 14);
  EXPECT_EQ(first.tokens, again.tokens);
  EXPECT_EQ(first.log_probs, again.log_probs);
}

TEST(BestTokens, OfARowDependOnItAlone) {
  const gpu::Emulation emulated;
  at::manual_seed(7);
  const at::Tensor logits = at::randn({5, 3000}) * 4;
  const BestTokens all = best_of(logits, 14), one = best_of(logits.narrow(0, 3, 1), 14);
  EXPECT_EQ(one.tokens, std::vector<int32_t>(all.tokens.begin() + 3 * 14, all.tokens.begin() + 4 * 14));
  EXPECT_EQ(one.log_probs, std::vector<float>(all.log_probs.begin() + 3 * 14, all.log_probs.begin() + 4 * 14));
}

TEST(BestTokens, OfRowsThatAreNoNumbersAreNone) {
  const gpu::Emulation emulated;
  at::Tensor logits = at::zeros({3, 400});
  logits[0][399] = std::numeric_limits<float>::quiet_NaN();
  logits[2] = kNever;
  const BestTokens best = best_of(logits, 2, {0, 0, 0});
  EXPECT_EQ(best.tokens, (std::vector<int32_t>{gpu::kNoToken, gpu::kNoToken, 0, 1, gpu::kNoToken, gpu::kNoToken}));
  EXPECT_TRUE(std::isnan(best.asked[0]));
}

TEST(BestTokens, OfNoRowsAreNone) {
  const gpu::Emulation emulated;
  EXPECT_TRUE(best_of(at::zeros({0, 10}), 3).tokens.empty());
}

TEST(BestTokens, AreFoundOnTheCpuWhereNothingIsEmulated) {
  EXPECT_FALSE(gpu::finds_best(at::kCPU));
  const gpu::Emulation emulated;
  EXPECT_TRUE(gpu::finds_best(at::kCPU));
}

class BestTokensOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!at::hasCUDA() || !gpu::finds_best(at::kCUDA)) GTEST_SKIP() << "no GPU in this build or machine";
  }
};

TEST_F(BestTokensOnGpu, AreThoseOfASort) {
  expect_the_best_of_many_sizes(at::kCUDA);
}

TEST_F(BestTokensOnGpu, AreTheLowerOnesOfEquals) {
  expect_the_best_of_equals(at::kCUDA);
}

}  // namespace
}  // namespace lacuna
