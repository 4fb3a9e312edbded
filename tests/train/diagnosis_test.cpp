#include "train/diagnosis.h"

#include <gmock/gmock.h>

#include <cmath>

#include "../base/scratch_folder.h"
#include "base/files.h"
#include "toy.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class Diagnosis : public testing::Test {
 protected:
  static ModelOptions small_model() {
    ModelOptions small;
    small.d_model = small.d_ff = 16;
    small.num_heads = 2;
    small.encoder_layers = small.decoder_layers = 2;
    return small;
  }
  std::string found() { return first_not_finite(update_, transformer_loss(model_, options_, "cpu"), 1, optimizer_); }
  Tensor weight(const std::string& name) const { return optimizer_.weights().at(name); }

  TrainOptions options_;
  std::shared_ptr<Transformer> model_ = std::make_shared<Transformer>(small_model(), VocabularySizes{10, 10, true}, 1);
  Optimizer optimizer_{FlatParameters(trained_parameters(*model_)), options_};
  SavedUpdate update_ = {7, {toy_batch(0, 0), toy_batch(0, 1)}};
};

TEST_F(Diagnosis, FindsNothingWhereAllIsFinite) {
  EXPECT_EQ(found(), "");
  EXPECT_EQ(optimizer_.not_finite(), "");
  for (const auto& [name, gradient] : optimizer_.gradients()) EXPECT_FALSE(gradient.defined()) << name;
}

TEST_F(Diagnosis, NamesTheFirstTensorOfTheForwardPass) {
  weight("decoder.layers.1.cross_attention.query.weight")[0][0] = NAN;
  EXPECT_THAT(found(),
              AllOf(StartsWith("in the forward pass, first decoder.layers.1.cross_attention: queries: "), HasSubstr("not finite")));
  EXPECT_THAT(optimizer_.not_finite(), StartsWith("decoder.layers.1.cross_attention.query.weight has 1 of 256 values that are not finite"));
  weight("encoder.layers.0.feed_forward.outer.weight").fill_(3e38);
  EXPECT_THAT(found(), StartsWith("in the forward pass, first encoder.layers.0.feed_forward: sum of its output and the residual: "));
}

TEST_F(Diagnosis, NamesTheFirstGradientFromTheLossToTheInput) {
  const LossFunction finite = transformer_loss(model_, options_, "cpu");
  const LossFunction loss = [&](const Batch& batch, const ForwardContext& context) {
    LossSums sums = finite(batch, context);
    const Tensor gain = model_->named_parameters()["encoder.layers.1.feed_forward_norm.gain"];
    sums.loss = sums.loss + (gain - gain.detach()).sqrt().sum();  // the root of zero, whose slope is infinite
    return sums;
  };
  EXPECT_THAT(first_not_finite(update_, loss, 1, optimizer_),
              StartsWith("in the backward pass, first the gradient of encoder.layers.1.feed_forward_norm.gain: 16 of 16 values are not"));
}

TEST_F(Diagnosis, OfAnUpdateReadBackIsTheSame) {
  const ScratchFolder folder;
  const VocabularyPtr vocabulary = token_list_from_bytes("<unk>\n<s>\n</s>\na\nb\nc\nd\ne\nf\ng\n", "test");
  update_.write(folder / "batch.json", {vocabulary, vocabulary});
  const SavedUpdate read = SavedUpdate::read(folder / "batch.json", {vocabulary, vocabulary});
  EXPECT_EQ(read.step, 7);
  ASSERT_EQ(read.batches.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read.batches[i]->src, update_.batches[i]->src);
    EXPECT_EQ(read.batches[i]->tgt, update_.batches[i]->tgt);
    EXPECT_EQ(read.batches[i]->src_shape->ids(), update_.batches[i]->src_shape->ids());
    EXPECT_EQ(read.batches[i]->tgt_shape->offsets(), update_.batches[i]->tgt_shape->offsets());
  }
}

TEST_F(Diagnosis, RefusesWhatIsNoSavedUpdate) {
  const ScratchFolder folder;
  const auto error = [&](const std::string& text) {
    return message_of<DataError>([&] { SavedUpdate::read(folder.write("batch.json", text), toy_vocabularies()); });
  };
  EXPECT_THAT(error("[]"), AllOf(HasSubstr("batch.json is not what lacuna train writes"), HasSubstr("Give the bad_batch.json")));
  EXPECT_THAT(error(R"({"step": 1, "pairs": []})"), HasSubstr("it has no pairs"));
  EXPECT_THAT(error(R"({"step": 1, "pairs": [{"batch": 0, "id": 0, "src_ids": [3], "tgt_ids": [4]}]})"),
              HasSubstr("tgt_ids holds 4, and the vocabulary has 4 pieces"));
  EXPECT_THAT(error(R"({"step": 1, "pairs": [{"batch": 0, "id": 0, "src_ids": [], "tgt_ids": [3]}]})"), HasSubstr("a pair has no src_ids"));
  EXPECT_THAT(error(R"({"step": 1, "pairs": [{"batch": 3, "id": 0, "src_ids": [3], "tgt_ids": [3]}]})"), HasSubstr("not in order"));
}

}  // namespace
}  // namespace lacuna
