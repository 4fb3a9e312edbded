#include "attention/gpu/flash.h"

#include <cmath>
#include <limits>

#include "attention_calls.h"
#include "emulation.h"

// Softmax by flash attention: which calls and sentences go that way, and that what goes in and comes out is in its place. LibTorch's
// kernels need a GPU; here plain operations stand for them, by their definition.
namespace lacuna::contract {
namespace {

int calls_of_flash = 0;

/// The rows of one sentence.
struct Range {
  int64_t begin, count;
  Range(const Tensor& offsets, int64_t b) : begin(offsets[b].item<int>()), count(offsets[b + 1].item<int>() - begin) {}
  Tensor of(const Tensor& rows) const { return rows.detach().narrow(0, begin, count).to(at::kFloat); }
};

/// f(rows of q, rows of k) for each sentence.
template <class F>
void for_each_sentence(const cuda::FlashInputs& in, F f) {
  for (int64_t b = 0; b + 1 < in.query_offsets.size(0); ++b) f(Range(in.query_offsets, b), Range(in.key_offsets, b));
}

/// The context [Tq, H, d] of float tensors, of which the last query sees every key if the call is causal.
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, bool causal, double scale, Tensor* log_sums = nullptr) {
  Tensor scores = at::einsum("qhd,khd->hqk", {q, k}) * scale;
  const int64_t queries = q.size(0), keys = k.size(0);
  if (causal)
    scores = scores.masked_fill(at::ones({queries, keys}, at::kBool).triu(keys - queries + 1), -std::numeric_limits<double>::infinity());
  if (log_sums != nullptr) *log_sums = scores.logsumexp(2);
  return at::einsum("hqk,khd->qhd", {scores.softmax(2), v});
}

cuda::FlashResults forward(const cuda::FlashInputs& in) {
  ++calls_of_flash;
  std::vector<Tensor> contexts, log_sums;
  for_each_sentence(in, [&](const Range& queries, const Range& keys) {
    EXPECT_LE(queries.count, in.most_queries);
    EXPECT_LE(keys.count, in.most_keys);
    const Tensor context = attend(queries.of(in.q), keys.of(in.k), keys.of(in.v), in.causal, in.scale, &log_sums.emplace_back());
    contexts.push_back(context.to(at::kBFloat16));
  });
  return {at::cat(contexts, 0), at::cat(log_sums, 1), at::empty({2}, at::kLong), at::empty({0}, at::kLong)};
}

std::array<Tensor, 3> backward(const cuda::FlashInputs& in, const cuda::FlashResults& results, const Tensor& context_gradient) {
  EXPECT_EQ(results.context.sizes(), context_gradient.sizes());
  EXPECT_EQ(results.log_sums.size(1), in.q.size(0));
  const at::AutoGradMode with_gradients(true);
  std::vector<Tensor> gradients[3];
  for_each_sentence(in, [&](const Range& queries, const Range& keys) {
    const Tensor leaves[] = {queries.of(in.q).requires_grad_(), keys.of(in.k).requires_grad_(), keys.of(in.v).requires_grad_()};
    attend(leaves[0], leaves[1], leaves[2], in.causal, in.scale).backward(queries.of(context_gradient));
    for (size_t i = 0; i < 3; ++i) gradients[i].push_back(leaves[i].grad().to(at::kBFloat16));
  });
  return {at::cat(gradients[0], 0), at::cat(gradients[1], 0), at::cat(gradients[2], 0)};
}

const cuda::FlashKernels plain_flash = {forward, backward};

class Flash : public testing::Test {
 protected:
  void SetUp() override { calls_of_flash = 0; }

  const Emulation emulation_{{cuda::all_emulated_kernels(), shared_bytes, /*takes_short_rows=*/true, &plain_flash}};
};

/// Rows that bf16 can hold.
Inputs inputs_of(const std::vector<int32_t>& queries, const std::vector<int32_t>& keys) {
  Inputs inputs(queries, keys, 2, 16);
  for (Tensor* rows : {&inputs.q, &inputs.k, &inputs.v, &inputs.context_gradient}) *rows = rows->to(at::kBFloat16).to(at::kDouble);
  return inputs;
}

AttentionCall call_of(const Inputs& inputs, const std::shared_ptr<const AttentionType>& type, bool causal) {
  return inputs.call(type, at::kBFloat16, causal);
}

TEST_F(Flash, EqualsTheReference) {
  const auto type = type_of(variant("softmax", ""), "full", 2);
  const std::pair<std::vector<int32_t>, std::vector<int32_t>> cases[] = {{{130, 100}, {130, 100}},  // all sentences go that way
                                                                         {{20, 130, 0, 100, 7}, {20, 130, 30, 100, 7}},  // some
                                                                         {{20, 5, 40}, {100, 150, 60}}};
  for (const auto& [queries, keys] : cases)
    for (const bool causal : {false, true}) {
      if (causal && queries != keys) continue;
      SCOPED_TRACE(std::to_string(queries.size()) + " sentences" + (causal ? ", causal" : ""));
      const Inputs inputs = inputs_of(queries, keys);
      const Outcome expected = outcome_of(inputs.call(type, at::kDouble, causal), training(), inputs.context_gradient, /*reference=*/true);
      calls_of_flash = 0;
      expect_near(outcome_of(call_of(inputs, type, causal), training(), inputs.context_gradient), expected, 2e-2);
      EXPECT_EQ(calls_of_flash, 1);
    }
}

TEST_F(Flash, WritesThePartsOfWhatIsPacked) {
  const auto type = type_of(variant("softmax", ""), "full", 2);
  for (const std::vector<int32_t>& lengths : {std::vector<int32_t>{130, 100}, std::vector<int32_t>{20, 130}}) {
    const Inputs inputs = inputs_of(lengths, lengths);
    AttentionCall apart = call_of(inputs, type, true), together = apart;
    together.packed = at::stack({apart.q, apart.k, apart.v}, 1).detach().requires_grad_();
    together.q = together.packed.select(1, 0);
    together.k = together.packed.select(1, 1);
    together.v = together.packed.select(1, 2);
    const Tensor gradient = inputs.context_gradient.to(at::kBFloat16);
    attention(apart, training()).backward(gradient);
    attention(together, training()).backward(gradient);
    EXPECT_TRUE(together.packed.grad().equal(at::stack({apart.q.grad(), apart.k.grad(), apart.v.grad()}, 1)));
    EXPECT_EQ(calls_of_flash, 2);
    calls_of_flash = 0;
  }
}

// --- what it does not take ---

TEST_F(Flash, TakesSoftmaxOverAllKeysAlone) {
  const Inputs inputs = inputs_of({120}, {120});
  const auto takes = [&](const Variant& variant, const std::string& pattern, double dropout = 0, bool is_training = true) {
    const auto type = type_of(variant, pattern, 2);
    AttentionCall call = call_of(inputs, type, true);
    call.dropout = dropout;
    return cuda::flash_takes(call, {.training = is_training});
  };
  EXPECT_TRUE(takes(variant("softmax", ""), "full"));
  EXPECT_FALSE(takes(variant("entmax", "{alpha: 1}"), "full"));
  EXPECT_FALSE(takes(variant("topk", ""), "full"));
  EXPECT_FALSE(takes(variant("softmax", ""), "{type: local, window: 500}"));
  EXPECT_FALSE(takes(variant("softmax", ""), "{heads: [full, {type: local, window: 4}]}"));
  EXPECT_FALSE(takes(variant("softmax", ""), "full", 0.1));  // its masks would depend on the batch
  EXPECT_TRUE(takes(variant("softmax", ""), "full", 0.1, /*is_training=*/false));
}

TEST_F(Flash, TakesBf16Alone) {
  const Inputs inputs = inputs_of({120}, {120});
  const auto type = type_of(variant("softmax", ""), "full", 2);
  EXPECT_TRUE(cuda::flash_takes(inputs.call(type, at::kBFloat16), {}));
  EXPECT_FALSE(cuda::flash_takes(inputs.call(type, at::kFloat), {}));
}

TEST_F(Flash, TakesSentencesOfManyKeys) {
  const auto type = type_of(variant("softmax", ""), "full", 2);
  const Inputs inputs = inputs_of({3, 96, 95, 0}, {96, 96, 95, 200});
  const AttentionCall plain = call_of(inputs, type, false), causal = call_of(inputs, type, true);
  const auto taken = [](const AttentionCall& call) {
    std::vector<bool> all(4);
    for (size_t b = 0; b < all.size(); ++b) all[b] = cuda::flash_takes_sentence(call, static_cast<int64_t>(b));
    return all;
  };
  EXPECT_EQ(taken(plain), (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(taken(causal), (std::vector<bool>{false, true, false, false}));  // the first has its queries at 0, 1 and 2
}

}  // namespace
}  // namespace lacuna::contract
