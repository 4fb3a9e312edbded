#include "attention/alignment_guide.h"

#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>

#include "attention/registry.h"
#include "attention_calls.h"

// The loss of guided alignment (attention/alignment_guide.h): its value by hand, and its gradient against differences of its value.
namespace lacuna::contract {
namespace {

using GuideLinks = std::vector<std::pair<int32_t, int32_t>>;

constexpr int64_t kHeads = 2, kGuided = 1;
constexpr double kWeight = 0.5;

/// Three sentences of 3, 0 and 2 queries and 4, 2 and 11 keys; the keys take two calls.
Inputs some_inputs() {
  return {{3, 0, 2}, {4, 2, 11}, kHeads, 8};
}

/// Rows of keys and of queries: query 0 has two keys, query 1 none, query 4 three.
const GuideLinks& some_links() {
  static const GuideLinks links = {{1, 0}, {3, 0}, {0, 2}, {6, 3}, {16, 4}, {7, 4}, {10, 4}, {7, 4}};
  return links;
}

std::vector<Variant> guided_variants() {
  std::vector<Variant> variants;
  for (const Variant& variant : all_variants()) {
    const auto type = type_of(variant, "full", kHeads);
    if (!type->needs_distance() && reason_not_to_guide(*type).empty()) variants.push_back(variant);
  }
  return variants;
}

Tensor loss_of(const AttentionCall& call, const GuideLinks& links = some_links()) {
  AlignmentGuide guide({0, static_cast<int>(kGuided)}, kWeight, links);
  guide.see(call, training());
  return guide.loss();
}

/// Returns the gradients of queries and keys.
std::vector<Tensor> gradients_of(const AttentionCall& call) {
  loss_of(call).backward();
  return {call.q.grad().cpu(), call.k.grad().cpu()};
}

TEST(AlignmentGuide, KnowsTheTypesThatAttendToOtherSentences) {
  std::vector<std::string> names;
  for (const Variant& variant : guided_variants()) names.push_back(variant.name());
  for (const char* name : {"softmax", "topk", "rela", "sparsemax", "entmax15", "entmax"})
    EXPECT_TRUE(std::ranges::any_of(names, [&](const std::string& one) { return one.starts_with(name); })) << name;
}

TEST(AlignmentGuide, IsTheDivergenceFromSoftmax) {
  const Inputs inputs = some_inputs();
  const auto type = type_of(variant("softmax", ""), "full", kHeads);
  const AttentionCall call = inputs.call(type, at::kDouble);
  Tensor expected = at::zeros({}, at::kDouble);
  const auto add = [&](int64_t query, int64_t first, int64_t count, const std::vector<int64_t>& keys) {
    const Tensor scores = call.k.narrow(0, first, count).select(1, kGuided).matmul(call.q[query][kGuided]) * call.scale;
    const Tensor log_p = at::log_softmax(scores, 0).index_select(0, at::tensor(keys));
    expected = expected - kWeight * (log_p.mean() + std::log(static_cast<double>(keys.size())));
  };
  add(0, 0, 4, {1, 3});
  add(2, 0, 4, {0});
  add(3, 6, 11, {0});
  add(4, 6, 11, {1, 4, 10});
  const Tensor found = loss_of(call);
  EXPECT_NEAR(found.item<double>(), expected.item<double>(), 1e-12);
  const auto inputs_of = [&] { return std::vector<Tensor>{call.q, call.k}; };
  const auto wanted = torch::autograd::grad({expected}, inputs_of()), given = torch::autograd::grad({found}, inputs_of());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_LT((wanted[i] - given[i]).abs().max().item<double>(), 1e-12);
}

TEST(AlignmentGuide, HasTheGradientOfItsValueWithEveryType) {
  constexpr double kStep = 1e-5;
  const Inputs inputs = some_inputs();
  for (const Variant& variant : guided_variants()) {
    SCOPED_TRACE(variant.name());
    const auto type = type_of(variant, "full", kHeads);
    const std::vector<Tensor> gradients = gradients_of(inputs.call(type, at::kDouble));
    for (const int64_t head : {int64_t{0}, kGuided})
      for (const auto& [row, feature] : {std::pair(0, 1), std::pair(2, 7), std::pair(4, 0), std::pair(1, 3)})
        for (const bool is_key : {false, true}) {
          const auto moved = [&, row = row, feature = feature](double by) {
            Inputs other = inputs;
            Tensor& rows = is_key ? other.k : other.q;
            rows = rows.clone();
            rows[row][head][feature] += by;
            return loss_of(other.call(type, at::kDouble)).item<double>();
          };
          const double slope = (moved(kStep) - moved(-kStep)) / (2 * kStep);
          EXPECT_NEAR(gradients[is_key ? 1 : 0][row][head][feature].item<double>(), slope, 1e-6) << head << " " << row << " " << feature;
        }
  }
}

TEST(AlignmentGuide, IsTheSameOnEveryEngine) {
  const Inputs inputs = some_inputs();
  for (const Variant& variant : guided_variants()) {
    const auto type = type_of(variant, "full", kHeads);
    const AttentionCall exact = inputs.call(type, at::kDouble);
    const double expected = loss_of(exact).item<double>();
    const std::vector<Tensor> gradients = gradients_of(exact);
    for (const Engine engine : call_engines()) {
      SCOPED_TRACE(variant.name() + ", " + name_of(engine));
      use(engine);
      const AttentionCall call = inputs.call(type, dtype_of(engine));
      EXPECT_NEAR(loss_of(call).item<double>(), expected, is_double(engine) ? 1e-10 : 1e-4);
      const std::vector<Tensor> found = gradients_of(call);
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_LT((found[i] - gradients[i]).abs().max().item<double>(), is_double(engine) ? kDoubleContext : 1e-4);
    }
  }
}

/// One query and three keys, of which the scores are given.
AttentionCall call_of_scores(const std::shared_ptr<const AttentionType>& type, const std::vector<double>& scores) {
  const Inputs inputs({1}, {static_cast<int32_t>(scores.size())}, kHeads, 1);
  AttentionCall call = inputs.call(type, at::kDouble);
  call.q = at::ones({1, kHeads, 1}, at::kDouble).requires_grad_();
  call.k = at::tensor(scores, at::kDouble).view({-1, 1, 1}).repeat({1, kHeads, 1}).requires_grad_();
  call.scale = 1;
  return call;
}

TEST(AlignmentGuide, TeachesALinkedKeyWithoutWeightAndNoneThatIsRight) {
  for (const auto& [name, options] : {std::pair("sparsemax", ""), std::pair("entmax15", ""), std::pair("entmax", "{alpha: 1.7}"),
                                      std::pair("rela", ""), std::pair("topk", "{k: 1}")}) {
    SCOPED_TRACE(name);
    const auto type = type_of(variant(name, options), "full", kHeads);
    const AttentionCall wrong = call_of_scores(type, {1, -2, -3}), right = call_of_scores(type, {-2, 1, -3});
    const GuideLinks links = {{1, 0}};
    const Tensor loss = loss_of(wrong, links);
    EXPECT_GT(loss.item<double>(), 0);
    loss.backward();
    EXPECT_TRUE(wrong.k.grad().select(1, kGuided).flatten().to(at::kFloat).equal(at::tensor({0.5f, -0.5f, 0.f})));
    EXPECT_EQ(wrong.k.grad().select(1, 1 - kGuided).abs().max().item<double>(), 0);
    EXPECT_NEAR(loss_of(right, links).item<double>(), 0, 1e-12);
  }
}

TEST(AlignmentGuide, IsNothingWithoutLinksAndRefusesWhatItHasNoLossFor) {
  const Inputs inputs = some_inputs();
  const auto softmax = type_of(variant("softmax", ""), "full", kHeads),
             gelu = type_of(variant("rela", "{activation: gelu}"), "full", kHeads);
  EXPECT_FALSE(loss_of(inputs.call(softmax, at::kDouble), {}).defined());
  EXPECT_THAT(reason_not_to_guide(*gelu), testing::HasSubstr("rela without activation: relu"));
  EXPECT_THROW(loss_of(inputs.call(gelu, at::kDouble)), ShapeError);
}

}  // namespace
}  // namespace lacuna::contract
