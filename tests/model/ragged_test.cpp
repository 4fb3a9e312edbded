#include "small_model.h"

namespace lacuna {
namespace {

struct RaggedCase {
  NormPlace norm;
  double dropout;
};

class RaggedBatch : public testing::TestWithParam<RaggedCase> {
 protected:
  void SetUp() override {
    ModelOptions options = small_options(GetParam().norm);
    options.dropout = options.attention_dropout = options.activation_dropout = GetParam().dropout;
    model_ = small_model(options);
    model_->to(at::kDouble);
  }
  /// The loss of sentences first to last, which keep their ids.
  Tensor loss(size_t first, size_t last, Precision precision = Precision::kFp32) {
    const auto part = [&](const Sentences& all) {
      std::vector<int32_t> ids, lengths;
      std::vector<int64_t> names;
      for (size_t b = first; b < last; ++b) {
        ids.insert(ids.end(), all[b].begin(), all[b].end());
        lengths.push_back(static_cast<int32_t>(all[b].size()));
        names.push_back(static_cast<int64_t>(1000 + b));
      }
      return ragged_of(ids, std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths, names)));
    };
    const ForwardContext context = {.training = true, .seed = 5, .step = 12, .precision = precision};
    return model_->loss(part(some_sources()), part(some_targets()), 0.1, context).loss;
  }
  /// The gradients of all sentences' loss, end to end.
  Tensor all_gradients(at::ScalarType type, Precision precision) {
    model_->to(type);
    loss(0, 3, precision).backward();
    std::vector<Tensor> parts;
    for (const auto& [name, gradient] : take_gradients(*model_)) parts.push_back(gradient.reshape({-1}).to(at::kDouble));
    return at::cat(parts);
  }
  std::shared_ptr<Transformer> model_;
};
INSTANTIATE_TEST_SUITE_P(, RaggedBatch,
                         testing::Values(RaggedCase{NormPlace::kPre, 0}, RaggedCase{NormPlace::kPost, 0}, RaggedCase{NormPlace::kPre, 0.3},
                                         RaggedCase{NormPlace::kPost, 0.3}),
                         [](const auto& test) {
                           return std::string(test.param.norm == NormPlace::kPre ? "PreNorm" : "PostNorm") +
                                  (test.param.dropout > 0 ? "WithDropout" : "");
                         });

// The same products added up in another order.
constexpr double kAloneTolerance = 1e-10;

TEST_P(RaggedBatch, HasTheLossAndTheGradientsOfItsSentences) {
  const Tensor whole = loss(0, 3);
  whole.backward();
  const auto gradients = take_gradients(*model_);
  double sum = 0;
  for (size_t b = 0; b < 3; ++b) {
    const Tensor alone = loss(b, b + 1);
    alone.backward();
    sum += alone.item<double>();
  }
  EXPECT_NEAR(whole.item<double>(), sum, kAloneTolerance);
  for (const auto& [name, gradient] : take_gradients(*model_)) EXPECT_LT(difference(gradient, gradients.at(name)), kAloneTolerance) << name;
}

TEST_P(RaggedBatch, GivesTheSameBitsTwice) {
  loss(0, 3).backward();
  const auto first = take_gradients(*model_);
  loss(0, 3).backward();
  for (const auto& [name, gradient] : take_gradients(*model_)) EXPECT_TRUE(gradient.equal(first.at(name))) << name;
}

TEST_P(RaggedBatch, HasItsGradientsInFloatAndBf16) {
  const Tensor exact = all_gradients(at::kDouble, Precision::kFp32);
  const auto error_of = [&](Precision precision) {
    return ((all_gradients(at::kFloat, precision) - exact).norm() / exact.norm()).item<double>();
  };
  EXPECT_LT(error_of(Precision::kFp32), 1e-5);
  const double in_bf16 = error_of(Precision::kBf16);
  EXPECT_LT(in_bf16, 0.1);   // roundings of 2^-9 each, and the ReLUs that they move across zero: 0.007 to 0.08
  EXPECT_GT(in_bf16, 1e-3);  // or nothing was rounded
}

TEST(RaggedOf, RefusesIdsThatDoNotFillTheSentences) {
  EXPECT_THROW(ragged_of({1, 2, 3}, std::make_shared<const RaggedShape>(RaggedShape::of_lengths({2}))), ShapeError);
}

}  // namespace
}  // namespace lacuna
