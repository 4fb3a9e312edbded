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

}  // namespace
}  // namespace lacuna
