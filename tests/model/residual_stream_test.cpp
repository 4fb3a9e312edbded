#include "model/residual_stream.h"

#include <gtest/gtest.h>

namespace lacuna {
namespace {

Ragged two_sentences() {
  return {at::randn({5, 8}), std::make_shared<const RaggedShape>(RaggedShape::of_lengths({2, 3}))};
}

std::vector<std::shared_ptr<Norm>> norms(size_t count) {
  ModelOptions options;
  options.d_model = 8;
  std::vector<std::shared_ptr<Norm>> all;
  for (size_t i = 0; i < count; ++i) all.push_back(std::make_shared<Norm>(options));
  return all;
}

void add_something(ResidualStream& stream) {
  stream.take(residual_norm(stream.next_end({Stack::kEncoder, 0, DropoutPlace::kFeedForward}), at::randn({5, 8})));
}

void expect_source(const NormedRows& rows) {
  ASSERT_NE(rows.source, nullptr);
  EXPECT_FALSE(rows.source->sum.requires_grad());
  EXPECT_TRUE(residual_norm({rows.source->sum, {}, rows.source->norm}, {}).normed.equal(rows.values));
}

TEST(ResidualStream, KnowsTheSourceOfRowsOtherThanTheResult) {
  const ForwardContext context;
  for (const NormPlace place : {NormPlace::kPre, NormPlace::kPost}) {
    ResidualStream stream(place, norms(place == NormPlace::kPre ? 3 : 2), two_sentences(), 0, context);
    if (place == NormPlace::kPre) expect_source(stream.values());
    add_something(stream);
    expect_source(stream.values());
    add_something(stream);
    EXPECT_EQ(stream.values().source, nullptr);
  }
}

TEST(ResidualStream, KeepsNoSourceWithoutGradients) {
  const at::NoGradGuard no_gradients;
  const ForwardContext context;
  ResidualStream stream(NormPlace::kPre, norms(2), two_sentences(), 0, context);
  EXPECT_EQ(stream.values().source, nullptr);
}

TEST(ResidualStream, DropsFeaturesOfWhatIsAddedInTrainingOthersAtEachPlace) {
  const Ragged embedded = two_sentences();
  const Tensor added = at::randn({5, 8});
  const auto result = [&](double rate, DropoutPlace place, bool training) {
    const ForwardContext context = {.training = training};
    ResidualStream stream(NormPlace::kPost, norms(1), embedded, rate, context);
    stream.take(residual_norm(stream.next_end({Stack::kEncoder, 0, place}), added));
    return stream.values().values;
  };
  const Tensor whole = result(0, DropoutPlace::kFeedForward, true), dropped = result(0.5, DropoutPlace::kFeedForward, true);
  EXPECT_TRUE(result(0.5, DropoutPlace::kFeedForward, false).equal(whole));
  EXPECT_FALSE(dropped.equal(whole));
  EXPECT_FALSE(dropped.equal(result(0.5, DropoutPlace::kSelfAttention, true)));
}

}  // namespace
}  // namespace lacuna
