#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "attention/attention.h"
#include "attention/rows/row_numbers.h"
#include "attention_contract.h"

/// Calls of attention() that tests of the contract make, and what comes of them.
namespace lacuna::contract {

// Contexts and gradients of unit-sized inputs in double: sums of at most some hundred products in another order.
inline constexpr double kDoubleContext = 1e-10;
// The same in float: 6e-8 times the length of the sums, and what a threshold makes of it.
inline constexpr double kFloatContext = 2e-5;
// The same in bf16: weights and gradients of scores are rounded to 8 bits before they enter products.
inline constexpr double kBf16Context = 2e-2;

/// True if the type's weights have no jump that another rounding of a score could cross.
inline bool is_smooth(const Variant& variant) {
  return std::string(variant.entry->name) != "topk";
}

/// The tensors of a call, made in double and the same for the same seed.
struct Inputs {
  Inputs(std::vector<int32_t> query_lengths, std::vector<int32_t> key_lengths, int64_t heads, int64_t d_head, double spread = 1) {
    queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths(query_lengths));
    const RaggedShape shape = RaggedShape::of_lengths(key_lengths);
    keys = std::make_shared<KeyRange>(KeyRange::of(shape));
    at::manual_seed(5);
    const auto rows = [&](int64_t count) { return at::randn({count, heads, d_head}, at::kDouble); };
    q = rows(queries->num_tokens()) * spread;
    k = rows(shape.num_tokens());
    v = rows(shape.num_tokens());
    context_gradient = rows(queries->num_tokens());
  }

  AttentionCall call(const std::shared_ptr<const AttentionType>& type, at::ScalarType dtype, bool causal = false) const {
    AttentionCall call;
    call.q = leaf(q, dtype);
    call.k = leaf(k, dtype);
    call.v = leaf(v, dtype);
    call.queries = queries;
    call.keys = keys;
    call.first_position = first_position;
    call.causal = causal;
    call.scale = 1 / std::sqrt(static_cast<double>(q.size(2)));
    call.type = type.get();
    if (const auto module = make_row_numbers(*type, q.size(1), 4))
      for (const RowNumber& number : module->forward(at::zeros({q.size(0), 4}))) call.numbers.push_back(leaf(number.values, dtype));
    return call;
  }

  /// Sentence b alone.
  Inputs sentence(int64_t b) const {
    Inputs alone = *this;
    const auto first = queries->begin(b), count = queries->length(b);
    const int32_t first_key = keys->begin[static_cast<size_t>(b)], key_count = keys->count[static_cast<size_t>(b)];
    alone.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({count}, {b}));
    alone.keys = std::make_shared<KeyRange>(KeyRange::of(RaggedShape::of_lengths({key_count})));
    for (Tensor* rows : {&alone.q, &alone.context_gradient}) *rows = rows->narrow(0, first, count);
    for (Tensor* rows : {&alone.k, &alone.v}) *rows = rows->narrow(0, first_key, key_count);
    return alone;
  }

  static Tensor leaf(const Tensor& values, at::ScalarType dtype) {
    const at::Device device = dtype == at::kDouble ? at::kCPU : device_in_use();
    return values.to(device, dtype).clone().detach().requires_grad_();
  }

  RaggedShapePtr queries;
  std::shared_ptr<const KeyRange> keys;
  std::vector<int32_t> first_position;
  Tensor q, k, v, context_gradient;
};

/// Gives the sentence's call the numbers that its queries, from `first` on, have in `all`.
inline void take_numbers(AttentionCall& sentence, const AttentionCall& all, int64_t first) {
  for (size_t n = 0; n < all.numbers.size(); ++n)
    if (all.numbers[n].dim() == 2) sentence.numbers[n] = all.numbers[n].detach().narrow(0, first, sentence.q.size(0)).requires_grad_();
}

/// Returns everything of a call that can have a gradient: q, k, v, then the numbers.
inline std::vector<Tensor> leaves_of(const AttentionCall& call) {
  std::vector<Tensor> leaves = {call.q, call.k, call.v};
  leaves.insert(leaves.end(), call.numbers.begin(), call.numbers.end());
  return leaves;
}

/// Returns context . gradient, and sets `rows`, if given, to the context.
inline Tensor loss_of(const AttentionCall& call, const ForwardContext& context, const Tensor& gradient, bool reference = false,
                      Tensor* rows = nullptr) {
  const Tensor result = reference ? attention_reference(call, context) : attention(call, context);
  if (rows != nullptr) *rows = result.detach();
  return (result * gradient.to(result.options())).sum();
}

/// The results of a call and its backward pass.
struct Outcome {
  std::vector<Tensor> all;  ///< the context, then the gradient of each leaf (undefined = none)
  const Tensor& context() const { return all[0]; }
  const Tensor& q() const { return all[1]; }
  const Tensor& k() const { return all[2]; }
  const Tensor& v() const { return all[3]; }
};

inline Outcome outcome_of(const AttentionCall& call, const ForwardContext& context, const Tensor& gradient, bool reference = false) {
  Outcome outcome = {{Tensor()}};
  loss_of(call, context, gradient, reference, &outcome.all[0]).backward();
  for (const Tensor& leaf : leaves_of(call)) outcome.all.push_back(leaf.grad());
  for (Tensor& tensor : outcome.all)
    if (tensor.defined()) tensor = tensor.cpu();
  return outcome;
}

/// Tensor by tensor, `tolerance` times the largest element or 1. No gradient is as good as one of 0.
inline void expect_near(const Outcome& found, const Outcome& expected, double tolerance) {
  ASSERT_EQ(found.all.size(), expected.all.size());
  for (size_t i = 0; i < found.all.size(); ++i) {
    const Tensor &one = found.all[i], &other = expected.all[i];
    if (!one.defined() && !other.defined()) continue;
    const Tensor exact = other.defined() ? other.to(at::kDouble) : at::zeros_like(one, at::kDouble);
    const Tensor difference = one.defined() ? one.to(at::kDouble) - exact : exact;
    if (exact.numel() == 0) continue;
    EXPECT_LT(difference.abs().max().item<double>(), tolerance * std::max(1.0, exact.abs().max().item<double>())) << "tensor " << i;
  }
}

inline void expect_same_bits(const Outcome& found, const Outcome& expected) {
  ASSERT_EQ(found.all.size(), expected.all.size());
  for (size_t i = 0; i < found.all.size(); ++i) {
    ASSERT_EQ(found.all[i].defined(), expected.all[i].defined()) << "tensor " << i;
    if (found.all[i].defined()) {
      EXPECT_TRUE(at::equal(found.all[i], expected.all[i])) << "tensor " << i;
    }
  }
}

inline at::ScalarType dtype_of(Engine engine) {
  return is_double(engine) ? at::kDouble : at::kFloat;
}

inline ForwardContext training() {
  return {.training = true, .seed = 3, .step = 7};
}

inline void compare_with_reference(const Inputs& inputs, const Variant& variant, const std::string& pattern, bool causal,
                                   double dropout = 0, const std::vector<Engine>& some_engines = call_engines()) {
  const auto type = type_of(variant, pattern, inputs.q.size(1));
  AttentionCall exact = inputs.call(type, at::kDouble, causal);
  exact.dropout = dropout;
  const Outcome expected = outcome_of(exact, training(), inputs.context_gradient, /*reference=*/true);
  for (const Engine engine : some_engines) {
    SCOPED_TRACE(variant.name() + ", " + pattern + (causal ? ", causal" : "") + ", " + name_of(engine));
    use(engine);
    AttentionCall call = inputs.call(type, dtype_of(engine), causal);
    call.dropout = dropout;
    expect_near(outcome_of(call, training(), inputs.context_gradient), expected, is_double(engine) ? kDoubleContext : kFloatContext);
  }
}

/// The tests of attention() that each type must pass; they stand in several files.
class AttentionCore : public PerType {};

}  // namespace lacuna::contract
