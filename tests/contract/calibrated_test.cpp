#include <cmath>
#include <map>
#include <mutex>

#include "attention/attention.h"
#include "attention/mask_pass.h"
#include "attention/row_numbers.h"
#include "attention_contract.h"
#include "config/yaml.h"

// The contract of types with a mask: calls in both passes, on every engine but the GPU's kernels, which have none, against the reference in
// double.
namespace lacuna::contract {
namespace {

// As in attention_core_test.cpp: sums in another order, and thresholds.
constexpr double kDoubleTolerance = 1e-10, kFloatTolerance = 2e-5;

constexpr const char* kChoices[] = {
    "{type: calibrated}",
    "{type: calibrated, combine: anneal, anneal_steps: 10}",
    "{type: calibrated, combine: fixed, lambda: 0.5}",
    "{type: calibrated, combine: fixed, base: {type: topk, k: 3}}",
    "{type: calibrated, base: sparsemax}",
    "{type: calibrated, base: rela}",
    "{type: calibrated, base: {type: rela, activation: gelu}, combine: anneal, anneal_steps: 10}",
    "{type: calibrated, base: {type: entmax, alpha: learned}}",
    "{type: calibrated, base: {type: span, max_span: 4, span_init: 1.5, ramp: 2}}",
};

std::shared_ptr<const AttentionType> type_of(const std::string& choice, const std::string& pattern = "full", int64_t num_heads = 2) {
  ConfigNode node = parse_yaml(choice, "test");
  node.set("pattern", parse_yaml("x: " + pattern, "test").entries()[0].second);
  return make_attention_type(node, num_heads);
}

ForwardContext moment(int pass) {
  return {.training = true, .seed = 3, .step = 7, .pass = pass};
}

struct Inputs {
  Inputs(const std::vector<int32_t>& query_lengths, const std::vector<int32_t>& key_lengths, int64_t num_heads, int64_t d_head) {
    queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths(query_lengths));
    const RaggedShape shape = RaggedShape::of_lengths(key_lengths);
    keys = std::make_shared<KeyRange>(KeyRange::of(shape));
    at::manual_seed(5);
    const auto rows = [&](int64_t count) { return at::randn({count, num_heads, d_head}, at::kDouble); };
    q = rows(queries->num_tokens());
    mask_q = rows(queries->num_tokens());
    gradient = rows(queries->num_tokens());
    k = rows(shape.num_tokens());
    v = rows(shape.num_tokens());
    mask_k = rows(shape.num_tokens());
    gate = at::randn({queries->num_tokens(), num_heads}, at::kDouble);
  }

  AttentionCall call(const std::shared_ptr<const AttentionType>& type, at::ScalarType dtype, bool causal = false) const {
    const auto leaf = [=](const Tensor& values) { return values.to(dtype).clone().detach().requires_grad_(); };
    AttentionCall call;
    call.q = leaf(q);
    call.k = leaf(k);
    call.v = leaf(v);
    call.mask_q = leaf(mask_q);
    call.mask_k = leaf(mask_k);
    call.queries = queries;
    call.keys = keys;
    call.causal = causal;
    call.scale = 1 / std::sqrt(static_cast<double>(q.size(2)));
    call.type = type.get();
    if (const auto module = make_row_numbers(*type, q.size(1), 4))
      for (const RowNumber& number : module->forward(at::zeros({q.size(0), 4}))) call.numbers.push_back(leaf(number.values));
    if (type->num_numbers() > static_cast<int>(call.numbers.size())) call.numbers.push_back(leaf(gate));
    return call;
  }

  RaggedShapePtr queries;
  std::shared_ptr<const KeyRange> keys;
  Tensor q, k, v, mask_q, mask_k, gradient, gate;
};

/// Everything of a call that can have a gradient.
std::vector<Tensor> leaves_of(const AttentionCall& call) {
  std::vector<Tensor> leaves = {call.q, call.k, call.v, call.mask_q, call.mask_k};
  leaves.insert(leaves.end(), call.numbers.begin(), call.numbers.end());
  return leaves;
}

/// context . gradient, and in the mask pass the penalty.
Tensor loss_of(const AttentionCall& call, ForwardContext context, const Tensor& gradient, bool reference, Tensor* rows = nullptr) {
  MaskPass masks;
  context.masks = &masks;
  const Tensor result = reference ? attention_reference(call, context) : attention(call, context);
  if (rows != nullptr) *rows = result.detach();
  const Tensor loss = (result * gradient.to(result.scalar_type())).sum().to(at::kDouble);
  return context.is_mask_pass() ? loss + 5 * masks.penalty() : loss;
}

/// The context, then the gradient of each leaf (undefined = none).
std::vector<Tensor> outcome_of(const AttentionCall& call, const ForwardContext& context, const Tensor& gradient, bool reference = false) {
  std::vector<Tensor> outcome(1);
  loss_of(call, context, gradient, reference, &outcome[0]).backward();
  for (const Tensor& leaf : leaves_of(call)) outcome.push_back(leaf.grad());
  return outcome;
}

at::ScalarType dtype_of(Engine engine) {
  return is_double(engine) ? at::kDouble : at::kFloat;
}

void expect_near(const std::vector<Tensor>& found, const std::vector<Tensor>& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (!expected[i].defined() || !found[i].defined()) {
      const Tensor& other = expected[i].defined() ? expected[i] : found[i];
      if (other.defined()) {
        EXPECT_EQ(other.abs().max().item<double>(), 0) << "gradient " << i;
      }
      continue;
    }
    if (expected[i].numel() == 0) continue;
    const double size = std::max(1.0, expected[i].abs().max().item<double>());
    EXPECT_LT((found[i].to(at::kDouble) - expected[i].to(at::kDouble)).abs().max().item<double>() / size, tolerance) << "gradient " << i;
  }
}

void compare_with_reference(const Inputs& inputs, const std::string& choice, const std::string& pattern, bool causal, double dropout) {
  const auto type = type_of(choice, pattern);
  for (const int pass : {0, 1}) {
    AttentionCall exact = inputs.call(type, at::kDouble, causal);
    exact.dropout = dropout;
    const auto expected = outcome_of(exact, moment(pass), inputs.gradient, /*reference=*/true);
    for (const Engine engine : cpu_engines()) {
      SCOPED_TRACE(choice + ", " + pattern + (causal ? ", causal, pass " : ", pass ") + std::to_string(pass) + " on " + name_of(engine));
      use(engine);
      AttentionCall call = inputs.call(type, dtype_of(engine), causal);
      call.dropout = dropout;
      expect_near(outcome_of(call, moment(pass), inputs.gradient), expected, is_double(engine) ? kDoubleTolerance : kFloatTolerance);
    }
  }
}

TEST(Calibrated, EqualsTheReferenceForEveryChoiceAndPattern) {
  const Inputs inputs({5, 1, 0, 33}, {5, 1, 0, 33}, 2, 20);
  for (const char* choice : kChoices)
    for (const std::string& pattern : all_patterns())
      for (const bool causal : {false, true}) compare_with_reference(inputs, choice, pattern, causal, 0);
}

TEST(Calibrated, EqualsTheReferenceUnderDropout) {
  const Inputs inputs({5, 1, 17}, {5, 1, 17}, 2, 16);
  for (const char* choice : kChoices)
    for (const char* pattern : {"full", "{type: strided, window: 1, stride: 3}"})
      compare_with_reference(inputs, choice, pattern, true, 0.3);
}

TEST(Calibrated, EqualsTheReferenceBetweenSentencesOfOtherLengths) {
  const Inputs inputs({3, 1, 20, 2}, {90, 6, 1, 0}, 2, 24);
  for (const char* choice : kChoices) compare_with_reference(inputs, choice, "full", false, 0);
}

TEST(Calibrated, HasTheGradientOfFiniteDifferences) {
  const Inputs inputs({3, 2}, {4, 3}, 2, 3);
  for (const char* choice : kChoices) {
    for (const int pass : {0, 1}) {
      SCOPED_TRACE(std::string(choice) + ", pass " + std::to_string(pass));
      const auto type = type_of(choice);
      const AttentionCall call = inputs.call(type, at::kDouble);
      const auto outcome = outcome_of(call, moment(pass), inputs.gradient);
      const at::NoGradGuard no_gradients;
      const std::vector<Tensor> leaves = leaves_of(call);
      for (size_t n = 0; n < leaves.size(); ++n) {
        const bool is_mask = n == 3 || n == 4;
        if (is_mask && pass == 0) continue;
        for (int64_t i = 0; i < leaves[n].numel(); ++i) {
          constexpr double kStep = 1e-6;
          double* element = leaves[n].data_ptr<double>() + i;
          const double before = *element;
          const auto at = [&](double value) {
            *element = value;
            return loss_of(call, moment(pass), inputs.gradient, /*reference=*/false).item<double>();
          };
          const double difference = (at(before + kStep) - at(before - kStep)) / (2 * kStep);
          *element = before;
          ASSERT_NEAR(outcome[n + 1].contiguous().data_ptr<double>()[i], difference, kFiniteDifference * 10)
              << "leaf " << n << ", element " << i;
        }
      }
    }
  }
}

TEST(Calibrated, TakesTheMaskAsAConstantInTheTranslationPass) {
  const Inputs inputs({4}, {6}, 2, 8);
  for (const char* choice : kChoices) {
    const auto type = type_of(choice);
    const AttentionCall call = inputs.call(type, at::kFloat);
    loss_of(call, moment(0), inputs.gradient, /*reference=*/false).backward();
    EXPECT_FALSE(call.mask_q.grad().defined() && call.mask_q.grad().abs().max().item<double>() > 0) << choice;
    EXPECT_FALSE(call.mask_k.grad().defined() && call.mask_k.grad().abs().max().item<double>() > 0) << choice;
    EXPECT_GT(call.q.grad().abs().max().item<double>(), 0) << choice;
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
  const auto type = type_of("{type: calibrated, mask_penalty: 2}", "full", 1);
  Inputs inputs({1}, {2}, 1, 1);
  inputs.mask_q = at::ones({1, 1, 1}, at::kDouble);
  inputs.mask_k = at::tensor({0.0, std::log(3.0)}, at::kDouble).view({2, 1, 1});  // m = 1/2, 3/4
  for (const bool reference : {false, true}) {
    MaskPass masks;
    ForwardContext context = moment(1);
    context.masks = &masks;
    const AttentionCall call = inputs.call(type, at::kDouble);
    reference ? attention_reference(call, context) : attention(call, context);
    EXPECT_NEAR(masks.penalty().item<double>(), 2 * std::sqrt((.25 + .0625) / 2), 1e-12);
    EXPECT_NEAR(masks.mean().item<double>(), .625, 1e-12);
  }
}

TEST(Calibrated, PerturbsNothingWhereThereIsOneKey) {
  const Inputs inputs({3}, {1}, 2, 8);
  const auto type = type_of("{type: calibrated}");
  for (const Engine engine : cpu_engines()) {
    use(engine);
    const AttentionCall call = inputs.call(type, dtype_of(engine));
    EXPECT_LT((attention(call, moment(1)) - call.v[0]).abs().max().item<double>(), 1e-6);
  }
}

TEST(Calibrated, GivesContextZeroToAQueryThatSeesNoKeyOrWeighsNone) {
  Inputs inputs({2, 3}, {0, 4}, 2, 8);
  inputs.q.fill_(1);
  inputs.k.fill_(-1);  // scores below 0: rows of rela are null
  for (const int pass : {0, 1}) {
    for (const Engine engine : cpu_engines()) {
      use(engine);
      for (const char* choice : kChoices) {
        const auto type = type_of(choice);
        const auto outcome = outcome_of(inputs.call(type, dtype_of(engine)), moment(pass), inputs.gradient);
        for (size_t i = 0; i < outcome.size(); ++i)
          if (outcome[i].defined()) {
            EXPECT_TRUE(outcome[i].isfinite().all().item<bool>()) << choice << ", " << i;
          }
        EXPECT_EQ(outcome[0].narrow(0, 0, 2).abs().max().item<double>(), 0) << choice;
      }
      const auto rela = type_of("{type: calibrated, base: rela}");
      EXPECT_EQ(attention(inputs.call(rela, dtype_of(engine)), moment(pass)).abs().max().item<double>(), 0);
    }
  }
}

TEST(Calibrated, IsExactForHugeScores) {
  Inputs inputs({3}, {9}, 2, 8);
  for (Tensor* rows : {&inputs.q, &inputs.mask_q}) rows->mul_(1e4);
  for (const char* choice : kChoices) {
    for (const int pass : {0, 1}) {
      for (const Engine engine : cpu_engines()) {
        use(engine);
        const auto type = type_of(choice);
        for (const Tensor& part : outcome_of(inputs.call(type, dtype_of(engine)), moment(pass), inputs.gradient))
          if (part.defined()) {
            EXPECT_TRUE(part.isfinite().all().item<bool>()) << choice << " on " << name_of(engine);
          }
      }
    }
  }
}

TEST(Calibrated, GivesKeysOutsideThePatternNoGradientAndHearsNothingOfThem) {
  Inputs inputs({12}, {12}, 2, 8);
  constexpr int64_t kQuery = 4;
  const Tensor kept = inputs.gradient[kQuery].clone();
  inputs.gradient.zero_();
  inputs.gradient[kQuery].copy_(kept);
  const Tensor unseen = at::tensor(std::vector<int64_t>{0, 1, 7, 8, 9, 10, 11}, at::kLong);
  Inputs other = inputs;
  for (auto [from, to] : {std::pair{&inputs.k, &other.k}, {&inputs.v, &other.v}, {&inputs.mask_k, &other.mask_k}}) {
    *to = from->clone();
    to->index_fill_(0, unseen, 100);
  }
  for (const char* choice : kChoices) {
    const auto type = type_of(choice, "{type: local, window: 2}");
    for (const Engine engine : cpu_engines()) {
      SCOPED_TRACE(std::string(choice) + " on " + name_of(engine));
      use(engine);
      const AttentionCall call = inputs.call(type, dtype_of(engine));
      const Tensor found = attention(call, moment(1)), changed = attention(other.call(type, dtype_of(engine)), moment(1));
      EXPECT_TRUE(at::equal(found[kQuery], changed[kQuery]));
      found.backward(inputs.gradient.to(found.scalar_type()));
      for (const Tensor& leaf : {call.k, call.v, call.mask_k}) EXPECT_EQ(leaf.grad().index_select(0, unseen).abs().max().item<double>(), 0);
    }
  }
}

TEST(Calibrated, ReadsKeysThroughSlotsAsIfTheyWereGathered) {
  const Inputs inputs({1, 1}, {7, 7}, 2, 24);
  KeyRange range;
  range.begin = {0, 7};
  range.count = {7, 4};
  const std::vector<int32_t> slots = {12, 3, 3, 5, 11, 0, 8, /**/ 1, 2, 13, 6};
  const Tensor index = at::tensor(std::vector<int64_t>(slots.begin(), slots.end()), at::kLong);
  for (const char* choice : kChoices) {
    for (const Engine engine : cpu_engines()) {
      use(engine);
      const auto type = type_of(choice);
      AttentionCall by_slots = inputs.call(type, dtype_of(engine)), gathered = by_slots;
      gathered.keys = std::make_shared<KeyRange>(range);
      KeyRange named = range;
      named.slots = slots;
      by_slots.keys = std::make_shared<KeyRange>(named);
      for (Tensor* rows : {&gathered.k, &gathered.v, &gathered.mask_k}) *rows = rows->index_select(0, index);
      EXPECT_TRUE(at::equal(attention(by_slots, {}), attention(gathered, {}))) << choice;
    }
  }
}

TEST(Calibrated, DoesNotChangeABitWithTheNumberOfThreads) {
  const Inputs inputs({9, 30, 2, 14}, {9, 30, 2, 14}, 2, 16);
  const int before = at::get_num_threads();
  for (const char* choice : kChoices) {
    const auto type = type_of(choice);
    at::set_num_threads(1);
    const auto one = outcome_of(inputs.call(type, at::kFloat, true), moment(1), inputs.gradient);
    at::set_num_threads(3);
    const auto three = outcome_of(inputs.call(type, at::kFloat, true), moment(1), inputs.gradient);
    at::set_num_threads(before);
    for (size_t i = 0; i < one.size(); ++i)
      if (one[i].defined()) {
        EXPECT_TRUE(at::equal(one[i], three[i])) << choice << ", " << i;
      }
  }
}

TEST(Calibrated, SkipsGradientsOfKeysAndValuesThatNobodyWants) {
  const Inputs inputs({5}, {7}, 2, 8);
  const auto type = type_of("{type: calibrated}");
  const AttentionCall whole = inputs.call(type, at::kFloat), call = inputs.call(type, at::kFloat);
  call.k.set_requires_grad(false);
  call.v.set_requires_grad(false);
  const auto all = outcome_of(whole, moment(1), inputs.gradient), some = outcome_of(call, moment(1), inputs.gradient);
  EXPECT_FALSE(some[2].defined() || some[3].defined());
  for (const size_t i : {0, 1, 4, 5}) EXPECT_TRUE(at::equal(some[i], all[i])) << i;
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
    const auto type = type_of("{type: calibrated, combine: anneal, anneal_steps: 10}", pattern);
    for (const bool reference : {false, true}) {
      Rows rows;
      ForwardContext context = moment(0);
      context.probe = &rows;
      const AttentionCall call = inputs.call(type, at::kFloat);
      reference ? attention_reference(call, context) : attention(call, context);
      EXPECT_EQ(rows.count, 12) << pattern;
    }
  }
}

TEST(Calibrated, RefusesACallWithoutAMask) {
  const Inputs inputs({3}, {3}, 2, 8);
  const auto type = type_of("{type: calibrated}"), softmax = make_attention_type(ConfigNode::scalar("softmax"), 2);
  AttentionCall call = inputs.call(type, at::kFloat);
  call.mask_k = Tensor();
  EXPECT_THROW(attention(call, {}), ShapeError);
  EXPECT_THROW(attention(inputs.call(softmax, at::kFloat), {}), ShapeError);
}

}  // namespace
}  // namespace lacuna::contract
