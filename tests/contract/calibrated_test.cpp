#include <cmath>
#include <map>
#include <mutex>

#include "attention_calls.h"
#include "config/yaml.h"

// The contract of types with a mask, in both passes, on every engine but the GPU's kernels, which have none. What they share with other
// types is in attention_core_test.cpp and attention_batch_test.cpp.
namespace lacuna::contract {
namespace {

std::shared_ptr<const AttentionType> calibrated(const std::string& options = "", const std::string& pattern = "full") {
  Variant chosen = variant("calibrated", "");
  chosen.options = options;
  return type_of(chosen, pattern, 2);
}

TEST(Calibrated, EqualsTheReferenceForEveryTypeAndPattern) {
  const Inputs inputs({5, 1, 0, 33}, {5, 1, 0, 33}, 2, 20);
  for (const Variant& variant : masked_variants())
    for (const std::string& pattern : all_patterns())
      for (const bool causal : {false, true}) compare_with_reference(inputs, variant, pattern, causal);
}

TEST(Calibrated, EqualsTheReferenceUnderDropout) {
  const Inputs inputs({5, 1, 17}, {5, 1, 17}, 2, 16);
  for (const Variant& variant : masked_variants())
    for (const char* pattern : {"full", "{type: strided, window: 1, stride: 3}"})
      compare_with_reference(inputs, variant, pattern, true, 0.3);
}

TEST(Calibrated, EqualsTheReferenceBetweenSentencesOfOtherLengths) {
  const Inputs inputs({3, 1, 20, 2}, {90, 6, 1, 0}, 2, 24);
  for (const Variant& variant : masked_variants()) compare_with_reference(inputs, variant, "full", false);
}

TEST(Calibrated, TakesTheMaskAsAConstantInTheTranslationPass) {
  const Inputs inputs({4}, {6}, 2, 8);
  for (const Variant& variant : masked_variants()) {
    const auto type = type_of(variant, "full", 2);
    const AttentionCall call = inputs.call(type, at::kFloat);
    loss_of(call, training(0), inputs.context_gradient).backward();
    EXPECT_FALSE(call.mask_q.grad().defined() && call.mask_q.grad().abs().max().item<double>() > 0) << variant.name();
    EXPECT_FALSE(call.mask_k.grad().defined() && call.mask_k.grad().abs().max().item<double>() > 0) << variant.name();
    EXPECT_GT(call.q.grad().abs().max().item<double>(), 0) << variant.name();
  }
}

/// One query over keys whose scores, and the mask's, are given; the values are the unit vectors, so that the context is the weights.
/// `twice` the query, it goes by tiles and not by lists.
Tensor weights_of(const types::Example& example, at::ScalarType dtype, bool reference, bool twice) {
  ConfigNode node = parse_yaml(example.options, "test");
  node.set("type", ConfigNode::scalar("calibrated"));
  const auto type = make_attention_type(node, 1);
  const auto n = static_cast<int64_t>(example.scores.size()), queries = int64_t{twice ? 2 : 1};
  const auto keys_of = [&](const std::vector<double>& scores) {
    const Tensor keys = at::zeros({n, 1, n}, dtype);
    for (int64_t j = 0; j < n; ++j) keys[j][0][0].fill_(scores[static_cast<size_t>(j)]);
    return keys;
  };
  AttentionCall call;
  call.q = call.mask_q = at::eye(n, dtype)[0].expand({queries, 1, n}).contiguous();
  call.k = keys_of(example.scores);
  call.mask_k = keys_of(example.mask_scores);
  call.v = at::eye(n, dtype).unsqueeze(1);
  call.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({static_cast<int32_t>(queries)}));
  call.keys = std::make_shared<KeyRange>(KeyRange::of(RaggedShape::of_lengths({static_cast<int32_t>(n)})));
  call.type = type.get();
  if (type->num_numbers() > 0) call.numbers.push_back(at::full({queries, 1}, example.numbers.at(0), dtype));
  const ForwardContext context = {.step = example.step, .pass = example.is_mask_pass ? 1 : 0};
  return (reference ? attention_reference(call, context) : attention(call, context))[queries - 1][0].to(at::kDouble);
}

TEST(Calibrated, GivesItsWorkedExamples) {
  for (const types::Example& example : variant("calibrated", "").entry->examples()) {
    const Tensor expected = at::tensor(example.weights, at::kDouble);
    for (const bool twice : {false, true}) {
      SCOPED_TRACE(example.options + (example.is_mask_pass ? ", mask pass" : ""));
      EXPECT_LT((weights_of(example, at::kDouble, /*reference=*/true, twice) - expected).abs().max().item<double>(), kDoubleWeights);
      for (const Engine engine : cpu_engines()) {
        use(engine);
        const Tensor found = weights_of(example, dtype_of(engine), /*reference=*/false, twice);
        EXPECT_LT((found - expected).abs().max().item<double>(), 3 * weights_tolerance(engine)) << name_of(engine);
      }
    }
  }
}

TEST(Calibrated, TellsTheMaskPassDistanceAndMean) {
  const auto type = type_of(variant("calibrated", "{mask_penalty: 2}"));
  Inputs inputs({1}, {2}, 1, 1);
  inputs.mask_q = at::ones({1, 1, 1}, at::kDouble);
  inputs.mask_k = at::tensor({0.0, std::log(3.0)}, at::kDouble).view({2, 1, 1});  // m = 1/2, 3/4
  for (const bool reference : {false, true}) {
    MaskPass masks;
    ForwardContext context = training(1);
    context.masks = &masks;
    const AttentionCall call = inputs.call(type, at::kDouble);
    reference ? attention_reference(call, context) : attention(call, context);
    EXPECT_NEAR(masks.penalty().item<double>(), 2 * std::sqrt((.25 + .0625) / 2), 1e-12);
    EXPECT_NEAR(masks.mean().item<double>(), .625, 1e-12);
  }
}

TEST(Calibrated, PerturbsNothingWhereThereIsOneKey) {
  const Inputs inputs({3}, {1}, 2, 8);
  const auto type = calibrated();
  for (const Engine engine : cpu_engines()) {
    use(engine);
    const AttentionCall call = inputs.call(type, dtype_of(engine));
    EXPECT_LT((attention(call, training(1)) - call.v[0]).abs().max().item<double>(), 1e-6);
  }
}

TEST(Calibrated, GivesContextZeroToAQueryThatSeesNoKeyOrWeighsNone) {
  Inputs inputs({2, 3}, {0, 4}, 2, 8);
  inputs.q.fill_(1);
  inputs.k.fill_(-1);  // scores below 0: rows of rela are null
  for (const int pass : {0, 1}) {
    for (const Engine engine : cpu_engines()) {
      use(engine);
      for (const Variant& variant : masked_variants()) {
        const auto type = type_of(variant, "full", 2);
        const auto outcome = outcome_of(inputs.call(type, dtype_of(engine)), training(pass), inputs.context_gradient);
        for (const Tensor& part : outcome.all)
          if (part.defined()) {
            EXPECT_TRUE(part.isfinite().all().item<bool>()) << variant.name();
          }
        EXPECT_EQ(outcome.context().narrow(0, 0, 2).abs().max().item<double>(), 0) << variant.name();
      }
      const auto rela = calibrated("{base: rela}");
      EXPECT_EQ(attention(inputs.call(rela, dtype_of(engine)), training(pass)).abs().max().item<double>(), 0);
    }
  }
}

TEST(Calibrated, EqualsTheReferenceOverLongSentences) {
  const Inputs inputs({3, 1}, {2000, 4000}, 1, 8);
  for (const Variant& variant : masked_variants()) compare_with_reference(inputs, variant, "full", false);
}

TEST(Calibrated, EqualsTheReferenceForEqualScores) {
  Inputs inputs({3, 20}, {9, 40}, 2, 8);
  for (Tensor* rows : {&inputs.q, &inputs.mask_q}) *rows = rows->mul(4).round() / 4;  // scores are exact, so equal in any order of sums
  for (Tensor* rows : {&inputs.k, &inputs.mask_k}) rows->fill_(0.5);
  for (const Variant& variant : masked_variants()) compare_with_reference(inputs, variant, "full", false);
}

TEST(Calibrated, IsExactForHugeScores) {
  constexpr double kHuge = 1e-3;  // of the context: a float holds scores of 2e4 to that
  Inputs inputs({3}, {9}, 2, 8);
  for (Tensor* rows : {&inputs.q, &inputs.mask_q}) *rows = (rows->mul(4).round() / 4).mul(8192);  // scores have no rounding that matters
  for (Tensor* rows : {&inputs.k, &inputs.mask_k}) *rows = rows->mul(4).round() / 4;
  for (const Variant& variant : masked_variants()) {
    for (const int pass : {0, 1}) {
      const auto type = type_of(variant, "full", 2);
      const Outcome expected = outcome_of(inputs.call(type, at::kDouble), training(pass), inputs.context_gradient, /*reference=*/true);
      for (const Engine engine : cpu_engines()) {
        SCOPED_TRACE(variant.name() + ", pass " + std::to_string(pass) + ", " + name_of(engine));
        use(engine);
        const Outcome found = outcome_of(inputs.call(type, dtype_of(engine)), training(pass), inputs.context_gradient);
        for (const Tensor& part : found.all)
          if (part.defined()) {
            EXPECT_TRUE(part.isfinite().all().item<bool>());
          }
        const double size = expected.context().abs().max().item<double>();
        EXPECT_LE((found.context().to(at::kDouble) - expected.context()).abs().max().item<double>(), kHuge * size);
      }
    }
  }
}

TEST(Calibrated, GivesKeysOutsideThePatternNoGradientAndHearsNothingOfThem) {
  Inputs inputs({12}, {12}, 2, 8);
  constexpr int64_t kQuery = 4;
  const Tensor kept = inputs.context_gradient[kQuery].clone();
  inputs.context_gradient.zero_();
  inputs.context_gradient[kQuery].copy_(kept);
  const Tensor unseen = at::tensor(std::vector<int64_t>{0, 1, 7, 8, 9, 10, 11}, at::kLong);
  Inputs other = inputs;
  for (auto [from, to] : {std::pair{&inputs.k, &other.k}, {&inputs.v, &other.v}, {&inputs.mask_k, &other.mask_k}}) {
    *to = from->clone();
    to->index_fill_(0, unseen, 100);
  }
  for (const Variant& variant : masked_variants()) {
    const auto type = type_of(variant, "{type: local, window: 2}", 2);
    for (const Engine engine : cpu_engines()) {
      SCOPED_TRACE(variant.name() + " on " + name_of(engine));
      use(engine);
      const AttentionCall call = inputs.call(type, dtype_of(engine));
      const Tensor found = attention(call, training(1)), changed = attention(other.call(type, dtype_of(engine)), training(1));
      EXPECT_TRUE(at::equal(found[kQuery], changed[kQuery]));
      found.backward(inputs.context_gradient.to(found.scalar_type()));
      for (const Tensor& leaf : {call.k, call.v, call.mask_k}) EXPECT_EQ(leaf.grad().index_select(0, unseen).abs().max().item<double>(), 0);
    }
  }
}

TEST(Calibrated, SkipsGradientsOfKeysAndValuesThatNobodyWants) {
  const Inputs inputs({5}, {7}, 2, 8);
  const auto type = calibrated();
  const AttentionCall whole = inputs.call(type, at::kFloat), call = inputs.call(type, at::kFloat);
  call.k.set_requires_grad(false);
  call.v.set_requires_grad(false);
  const auto all = outcome_of(whole, training(1), inputs.context_gradient), some = outcome_of(call, training(1), inputs.context_gradient);
  EXPECT_FALSE(some.k().defined() || some.v().defined());
  for (const size_t i : {0, 1, 4, 5}) EXPECT_TRUE(at::equal(some.all[i], all.all[i])) << i;
}

/// Keeps every row it sees, before and after calibration.
class Rows : public AttentionProbe {
 public:
  using Place = std::tuple<int, int64_t, int64_t>;
  void see(int, AttentionSite, int head, int64_t sentence, int64_t query, std::span<const float> weights,
           std::span<const int32_t>) override {
    const std::lock_guard lock(mutex_);
    weights_[{head, sentence, query}] = {weights.begin(), weights.end()};
  }
  void see_calibration(int, AttentionSite, int head, int64_t sentence, int64_t query, std::span<const float> original,
                       std::span<const float> mask, std::span<const int32_t>) override {
    const std::lock_guard lock(mutex_);
    const auto& weights = weights_.at({head, sentence, query});
    ASSERT_EQ(weights.size(), original.size());
    ASSERT_EQ(weights.size(), mask.size());
    const float gamma = std::exp(-.7f);
    for (size_t j = 0; j < weights.size(); ++j) EXPECT_NEAR(weights[j], original[j] * (gamma + (1 - gamma) * std::exp(1 - mask[j])), 1e-5);
    ++count;
  }
  int count = 0;

 private:
  std::mutex mutex_;
  std::map<Place, std::vector<float>> weights_;
};

TEST(Calibrated, ShowsAProbeWhatItCalibrates) {
  const Inputs inputs({1, 5}, {4, 30}, 2, 8);
  for (const char* pattern : {"full", "{type: strided, window: 1, stride: 3}"}) {
    const auto type = calibrated("{combine: anneal, anneal_steps: 10}", pattern);
    for (const bool reference : {false, true}) {
      Rows rows;
      ForwardContext context = training(0);
      context.probe = &rows;
      const AttentionCall call = inputs.call(type, at::kFloat);
      reference ? attention_reference(call, context) : attention(call, context);
      EXPECT_EQ(rows.count, 12) << pattern;
    }
  }
}

TEST(Calibrated, RefusesACallWithoutAMask) {
  const Inputs inputs({3}, {3}, 2, 8);
  const auto type = calibrated(), softmax = type_of(variant("softmax", ""), "full", 2);
  AttentionCall with = inputs.call(type, at::kFloat), without = inputs.call(softmax, at::kFloat);
  without.mask_q = with.mask_q;
  without.mask_k = with.mask_k;
  EXPECT_THROW(attention(without, {}), ShapeError);
  with.mask_k = Tensor();
  EXPECT_THROW(attention(with, {}), ShapeError);
}

}  // namespace
}  // namespace lacuna::contract
