#include "kernels/projection_loss.h"

#include "compare.h"
#include "kernels/reference.h"

namespace lacuna {
namespace {

class ProjectionLossTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, ProjectionLossTest, testing::ValuesIn(kernel_cases()), name_of_case);

constexpr int64_t kTokens = kLossRows + 70, kVocabulary = 90;  // two chunks

/// All logits at once, and autograd.
ProjectionLoss plain_loss(const Tensor& hidden, const Tensor& weight, const Tensor& targets, double smoothing,
                          Precision /*precision*/ = Precision::kFp32, const Tensor& bias = {}) {
  const Tensor products = hidden.matmul(weight.t());  // (T, D) x (D, V)
  const Tensor log_probs = at::log_softmax(bias.defined() ? products + bias : products, 1);
  const Tensor of_target = log_probs.gather(1, targets.unsqueeze(1)).squeeze(1);
  const Tensor loss = -(1 - smoothing) * of_target - smoothing * log_probs.mean(1);
  const Tensor nll = -of_target.detach(), best = log_probs.argmax(1);
  return {loss.to(at::kDouble).sum(), nll.to(at::kDouble).sum(), best.eq(targets).sum()};
}

TEST_P(ProjectionLossTest, EqualsItsReference) {
  const Tensor targets = at::randint(kVocabulary, {kTokens}, at::kLong);
  const auto fused = [](const auto&... arguments) { return projection_loss(arguments...); };
  const auto in_aten = [](const auto&... arguments) { return reference::projection_loss(arguments...); };
  for (const bool has_bias : {false, true})
    for (const double smoothing : {0.0, 0.1}) {
      const auto with = [&](auto kernel) {
        return [=](const Inputs& in) {
          const Tensor bias = has_bias ? in[2] : Tensor();
          return kernel(in[0], in[1], targets, smoothing, Precision::kFp32, bias).loss.to(in[0].scalar_type());
        };
      };
      const Inputs inputs = {at::randn({kTokens, 32}).to(type()), at::randn({kVocabulary, 32}).to(type()), spiky({kVocabulary}, type())};
      expect_same(with(fused), with(plain_loss), inputs);
      expect_same(with(in_aten), with(plain_loss), inputs);
    }
}

TEST(ProjectionLoss, InBf16SumsTheBiasGradientOverAllRows) {
  at::manual_seed(3);
  const Tensor hidden = at::randn({kRoundedLossRows + 70, 32}), weight = at::randn({kVocabulary, 32});  // two chunks
  const Tensor targets = at::randint(kVocabulary, {hidden.size(0)}, at::kLong);
  std::vector<Tensor> gradients;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const Tensor bias = at::zeros({kVocabulary}).requires_grad_(true);
    projection_loss(hidden, weight, targets, 0.1, precision, bias).loss.backward();
    gradients.push_back(bias.grad());
  }
  EXPECT_LE((gradients[1] - gradients[0]).norm().item<double>(), 0x1p-7 * gradients[0].norm().item<double>());  // factors have 8 bits
}

TEST_P(ProjectionLossTest, GivesNoGradientToAFrozenBias) {
  const Tensor weight = at::randn({5, 3}).to(type()).requires_grad_(true), bias = at::ones({5}, type());
  projection_loss(at::ones({2, 3}, type()), weight, at::zeros({2}, at::kLong), 0, Precision::kFp32, bias).loss.backward();
  EXPECT_TRUE(weight.grad().defined());
  EXPECT_FALSE(bias.grad().defined());
}

TEST_P(ProjectionLossTest, CountsLikeItsReference) {
  const Tensor hidden = at::randn({kTokens, 32}).to(type()), weight = at::randn({kVocabulary, 32}).to(type());
  Tensor targets = hidden.matmul(weight.t()).argmax(1);
  targets.narrow(0, 0, 300).fill_(5);  // some right, some wrong
  const ProjectionLoss plain = plain_loss(hidden, weight, targets, 0.1);
  for (const ProjectionLoss& found :
       {projection_loss(hidden, weight, targets, 0.1), reference::projection_loss(hidden, weight, targets, 0.1)}) {
    EXPECT_EQ(found.correct.item<int64_t>(), plain.correct.item<int64_t>());
    EXPECT_NEAR(found.nll.item<double>(), plain.nll.item<double>(), 1e-5 * plain.nll.item<double>());
  }
}

TEST_P(ProjectionLossTest, IsTheSameWithoutGradients) {
  const Tensor hidden = at::randn({20, 32}).to(type()).requires_grad_(true), weight = at::randn({kVocabulary, 32}).to(type());
  const Tensor targets = at::randint(kVocabulary, {20}, at::kLong);
  const Tensor with = projection_loss(hidden, weight, targets, 0.1).loss;
  const at::NoGradGuard guard;
  EXPECT_EQ(projection_loss(hidden, weight, targets, 0.1).loss.item<double>(), with.item<double>());
}

TEST(ProjectionLoss, OfOneTokenIsTheFormula) {
  const Tensor hidden = at::tensor({1.0}, at::kDouble).view({1, 1}), weight = at::tensor({0.0, std::log(3.0)}, at::kDouble).view({2, 1});
  const ProjectionLoss loss = projection_loss(hidden, weight, at::tensor({int64_t{1}}), 0.2);  // p = 1/4, 3/4
  EXPECT_NEAR(loss.loss.item<double>(), -0.8 * std::log(0.75) - 0.1 * (std::log(0.25) + std::log(0.75)), 1e-12);
  EXPECT_NEAR(loss.nll.item<double>(), -std::log(0.75), 1e-12);
  EXPECT_EQ(loss.correct.item<int64_t>(), 1);
}

TEST_P(ProjectionLossTest, OfALogitThatIsNoNumberIsNone) {
  const at::NoGradGuard no_gradients;
  const Tensor hidden = at::ones({1, 2}, type()), weight = at::zeros({3, 2}, type());
  weight[2][0] = NAN;
  EXPECT_TRUE(std::isnan(projection_loss(hidden, weight, at::zeros({1}, at::kLong), 0.1).nll.item<double>()));
}

TEST_P(ProjectionLossTest, RefusesATargetThatTheVocabularyLacks) {
  const Tensor hidden = at::ones({1, 2}, type()), weight = at::zeros({3, 2}, type());
  for (const int64_t target : {-1, 3}) EXPECT_THROW(projection_loss(hidden, weight, at::full({1}, target, at::kLong), 0.1), ShapeError);
}

TEST(ProjectionLoss, TakesTheLowestOfEqualLogits) {
  const Tensor hidden = at::ones({2, 1}, at::kDouble), weight = at::ones({3, 1}, at::kDouble);
  EXPECT_EQ(projection_loss(hidden, weight, at::tensor({int64_t{0}, int64_t{1}}), 0).correct.item<int64_t>(), 1);
}

}  // namespace
}  // namespace lacuna
