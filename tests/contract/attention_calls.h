#pragma once

#include "attention/attention.h"
#include "attention/row_numbers.h"
#include "attention_contract.h"

/// Calls of attention() that tests of the contract make, and what comes of them.
namespace lacuna::contract {

// Contexts and gradients of unit-sized inputs in double: sums of at most some hundred products in another order.
inline constexpr double kDoubleContext = 1e-10;
// The same in float: 6e-8 times the length of the sums, and what a threshold makes of it.
inline constexpr double kFloatContext = 2e-5;

/// The tensors of a call, made in double and the same for the same seed.
struct Inputs {
  Inputs(std::vector<int32_t> query_lengths, std::vector<int32_t> key_lengths, int64_t heads, int64_t d_head, double spread = 1) {
    queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths(query_lengths));
    keys = std::make_shared<RaggedShape>(RaggedShape::of_lengths(key_lengths));
    at::manual_seed(5);
    q = at::randn({queries->num_tokens(), heads, d_head}, at::kDouble) * spread;
    k = at::randn({keys->num_tokens(), heads, d_head}, at::kDouble);
    v = at::randn({keys->num_tokens(), heads, d_head}, at::kDouble);
    context_gradient = at::randn({queries->num_tokens(), heads, d_head}, at::kDouble);
  }

  AttentionCall call(const std::shared_ptr<const AttentionType>& type, at::ScalarType dtype, bool causal = false) const {
    AttentionCall call;
    call.q = leaf(q, dtype);
    call.k = leaf(k, dtype);
    call.v = leaf(v, dtype);
    call.queries = queries;
    call.keys = std::make_shared<KeyRange>(KeyRange::of(*keys));
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
    const int64_t first = queries->begin(b), count = queries->length(b), first_key = keys->begin(b), key_count = keys->length(b);
    alone.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({static_cast<int32_t>(count)}, {b}));
    alone.keys = std::make_shared<RaggedShape>(RaggedShape::of_lengths({static_cast<int32_t>(key_count)}, {b}));
    for (Tensor* rows : {&alone.q, &alone.context_gradient}) *rows = rows->narrow(0, first, count);
    for (Tensor* rows : {&alone.k, &alone.v}) *rows = rows->narrow(0, first_key, key_count);
    return alone;
  }

  static Tensor leaf(const Tensor& values, at::ScalarType dtype) {
    const at::Device device = dtype == at::kDouble ? at::kCPU : device_in_use();
    return values.to(device, dtype).clone().detach().requires_grad_();
  }

  RaggedShapePtr queries, keys;
  std::vector<int32_t> first_position;
  Tensor q, k, v, context_gradient;
};

/// Gives the sentence's call the numbers that its queries, from `first` on, have in `all`.
inline void take_numbers(AttentionCall& sentence, const AttentionCall& all, int64_t first) {
  for (size_t n = 0; n < all.numbers.size(); ++n)
    if (all.numbers[n].dim() == 2) sentence.numbers[n] = all.numbers[n].detach().narrow(0, first, sentence.q.size(0)).requires_grad_();
}

struct Outcome {
  Tensor context, q, k, v;  // all but the first are gradients
  std::vector<Tensor> numbers = {};
  std::vector<Tensor> all() const { return {context, q, k, v}; }
};

inline Outcome outcome_of(const AttentionCall& call, const ForwardContext& context, const Tensor& gradient, bool reference = false) {
  const Tensor result = reference ? attention_reference(call, context) : attention(call, context);
  result.backward(gradient.to(result.options()));
  Outcome outcome = {result.detach().cpu(), call.q.grad().cpu(), call.k.grad().cpu(), call.v.grad().cpu()};
  for (const Tensor& number : call.numbers) outcome.numbers.push_back(number.grad().cpu());
  return outcome;
}

inline at::ScalarType dtype_of(Engine engine) {
  return is_double(engine) ? at::kDouble : at::kFloat;
}

inline ForwardContext training() {
  return {.training = true, .seed = 3, .step = 7};
}

}  // namespace lacuna::contract
