#include "checkpoint/average.h"

#include <limits>

#include "scratch.h"

namespace lacuna {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Average : public testing::Test {
 protected:
  std::string save(const std::string& name, const CheckpointContents& contents) const {
    const std::string path = folder_ / name;
    save_checkpoint(path, contents);
    return path;
  }
  std::string error_with(const CheckpointContents& other) const {
    const std::string first = save("a", small_checkpoint(1)), second = save("b", other);
    return checkpoint_error_of([&] { average_checkpoints({first, second}); });
  }

  ScratchFolder folder_;
};

TEST_F(Average, IsTheMeanOfEachWeight) {
  const CheckpointContents contents[] = {small_checkpoint(1), small_checkpoint(2), small_checkpoint(3)};
  const CheckpointContents mean = average_checkpoints({save("a", contents[0]), save("b", contents[1]), save("c", contents[2])});
  for (const auto& [name, tensor] : mean.weights) {
    at::Tensor sum = contents[0].weights.at(name).to(at::kDouble);
    for (const int i : {1, 2}) sum = sum + contents[i].weights.at(name).to(at::kDouble);
    EXPECT_TRUE(at::equal(tensor, (sum / 3).to(at::kFloat))) << name;
  }
}

TEST_F(Average, SaysWhatItWasMadeFromAndHoldsNoTrainerState) {
  const std::string first = save("a", small_checkpoint(1)), second = save("b", small_checkpoint(2));
  const CheckpointContents mean = average_checkpoints({first, second});
  EXPECT_THAT(mean.info.averaged_from, ElementsAre(first, second));
  EXPECT_EQ(mean.info.step, 2);
  EXPECT_EQ(average_checkpoints({second, first}).info.step, 2) << "in any order";
  EXPECT_FALSE(mean.trainer_tensors);
  EXPECT_NO_THROW(load_model(save("averaged", mean)));
}

TEST_F(Average, TakesTheMovingAverages) {
  CheckpointContents contents = small_checkpoint(1);
  contents.ema_weights = small_checkpoint(2).weights;
  contents.info.uses_ema = true;
  const CheckpointContents mean = average_checkpoints({save("a", contents)});
  EXPECT_FALSE(mean.ema_weights);
  for (const auto& [name, tensor] : mean.weights) EXPECT_TRUE(at::equal(tensor, contents.ema_weights->at(name))) << name;
}

TEST_F(Average, RefusesWeightsThatAreNoNumbers) {
  CheckpointContents spoilt = small_checkpoint(2);
  spoilt.weights.at("decoder.norm.gain")[0] = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(error_with(spoilt), HasSubstr("b/model.safetensors: the tensor decoder.norm.gain has 1 of 8 values that are not finite"));
}

TEST_F(Average, RefusesAnotherModelSection) {
  Options options = small_options();
  options.model.num_heads = 4;
  EXPECT_THAT(error_with(small_checkpoint(2, options)), HasSubstr("model.num_heads: 2 and 4. Average checkpoints of one run"));
}

TEST_F(Average, RefusesAnotherVocabulary) {
  CheckpointContents other = small_checkpoint(2);
  other.vocabularies.src = other.vocabularies.tgt = token_list_from_bytes("<unk>\n<s>\n</s>\na\nx\nc\n", "test");
  EXPECT_THAT(error_with(other), HasSubstr("piece 4 of their source vocabularies is \"b\" and \"x\""));
}

TEST_F(Average, RefusesAVocabularyOfAnotherSize) {
  CheckpointContents other = small_checkpoint(2);
  other.vocabularies.src = other.vocabularies.tgt = token_list_from_bytes("<unk>\n<s>\n</s>\na\n", "test");
  EXPECT_THAT(error_with(other), HasSubstr("source vocabularies have 6 and 4 pieces"));
}

TEST_F(Average, RefusesOtherNamesAndShapes) {
  CheckpointContents other = small_checkpoint(2);
  const std::string first = other.weights.begin()->first;
  other.weights[first] = at::ones({1});
  EXPECT_THAT(error_with(other), HasSubstr(first + " is "));
  other.weights.erase(first);
  EXPECT_THAT(error_with(other), HasSubstr("only the first has the weight " + first));
  other = small_checkpoint(2);
  other.weights["surplus"] = at::ones({1});
  EXPECT_THAT(error_with(other), HasSubstr("only the second has the weight surplus"));
}

}  // namespace
}  // namespace lacuna
