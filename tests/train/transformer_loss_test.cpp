#include <gtest/gtest.h>

#include "base/ragged.h"
#include "toy.h"
#include "train/trainer.h"

namespace lacuna {
namespace {

TEST(TransformerLoss, TakesSmoothingAndPrecisionOfTheOptions) {
  ModelOptions small;
  small.d_model = small.d_ff = 16;
  small.num_heads = 2;
  small.encoder_layers = small.decoder_layers = 1;
  const auto model = std::make_shared<Transformer>(small, VocabularySizes{10, 10, true}, 1);
  const BatchPtr batch = toy_batch(0, 0);
  const auto own_loss = [&](double smoothing, ForwardContext context) {
    return model->loss(ragged_of(batch->src, batch->src_shape), ragged_of(batch->tgt, batch->tgt_shape), smoothing, context)
        .loss.item<double>();
  };
  const auto loss_of = [&](double smoothing, Precision precision, bool training) {
    TrainOptions options;
    options.label_smoothing = smoothing;
    options.precision = precision;
    return transformer_loss(model, options, "cpu")(*batch, {.training = training, .seed = 1, .step = 1}).loss.item<double>();
  };
  const ForwardContext context = {.training = true, .seed = 1, .step = 1};
  ForwardContext rounding = context;
  rounding.precision = Precision::kBf16;
  for (const double smoothing : {0.0, 0.1}) {
    EXPECT_EQ(loss_of(smoothing, Precision::kFp32, true), own_loss(smoothing, context));
    EXPECT_EQ(loss_of(smoothing, Precision::kBf16, true), own_loss(smoothing, rounding));
    EXPECT_EQ(loss_of(smoothing, Precision::kBf16, false), loss_of(smoothing, Precision::kFp32, false));
  }
  EXPECT_NE(own_loss(0, context), own_loss(0.1, context));
  EXPECT_NE(own_loss(0, context), own_loss(0, rounding));
}

TEST(TransformerLoss, GuidesAHeadByTheBatchsLinks) {
  ModelOptions small;
  small.d_model = small.d_ff = 16;
  small.num_heads = 2;
  small.encoder_layers = small.decoder_layers = 2;
  small.dropout = 0;
  const auto model = std::make_shared<Transformer>(small, VocabularySizes{10, 10, true}, 1);
  Batch batch = *toy_batch(0, 0);
  const ForwardContext context = {.training = true, .seed = 1, .step = 1};
  TrainOptions options;
  const auto sums_of = [&](const Batch& one, double weight, ForwardContext how) {
    options.guided_alignment.weight = weight;
    return transformer_loss(model, options, "cpu")(one, how);
  };
  const LossSums without = sums_of(batch, 0.1, context);
  EXPECT_FALSE(without.penalty.defined());
  for (int32_t t = 0; t < batch.tgt_tokens(); ++t) batch.links.emplace_back(t, t);  // the sides are equally long
  EXPECT_FALSE(sums_of(batch, 0, context).penalty.defined());
  EXPECT_FALSE(sums_of(batch, 0.1, {}).penalty.defined());
  const LossSums with = sums_of(batch, 0.1, context), stronger = sums_of(batch, 0.2, context);
  const double penalty = with.penalty.item<double>();
  EXPECT_GT(penalty, 0);
  EXPECT_NEAR(stronger.penalty.item<double>(), 2 * penalty, 1e-9);
  EXPECT_NEAR(with.loss.item<double>(), without.loss.item<double>() + penalty, 1e-6);
  EXPECT_EQ(with.nll.item<double>(), without.nll.item<double>());
  double of_parts = 0;
  const auto [first, second] = split_batch(batch);
  for (const BatchPtr& part : {first, second}) of_parts += sums_of(*part, 0.1, context).penalty.item<double>();
  EXPECT_NEAR(of_parts, penalty, 1e-5);
  const auto gradient_of = [&](int layer) {
    model->zero_grad();
    sums_of(batch, 1e4, context).backward();
    return model->named_parameters()["decoder.layers." + std::to_string(layer) + ".cross_attention.query.weight"]
        .grad()
        .abs()
        .sum()
        .item<double>();
  };
  options.guided_alignment.layer = 1;
  const double above = gradient_of(1);
  options.guided_alignment.layer = IntOrAuto();  // the last but one: the lowest
  EXPECT_LT(gradient_of(1), 1e-2 * above);
}

}  // namespace
}  // namespace lacuna
