#include "bench/attention_op.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "attention/registry.h"

namespace lacuna {
namespace {

/// Counts weights and zeros among them.
class ZeroCounter : public AttentionProbe {
 public:
  void see(int /*layer*/, AttentionSite /*site*/, int /*head*/, int64_t /*sentence*/, int64_t /*query*/, std::span<const float> weights,
           std::span<const int32_t> /*key_positions*/) override {
    weights_ += static_cast<int64_t>(weights.size());
    zeros_ += std::count(weights.begin(), weights.end(), 0.F);
  }
  double share() const { return static_cast<double>(zeros_) / static_cast<double>(weights_); }

 private:
  std::atomic<int64_t> weights_{0}, zeros_{0};  // rows come from several threads
};

/// These numbers in the shape's type, on its device.
Tensor placed(const Tensor& values, const AttentionShape& shape) {
  return values.detach().to(shape.dtype).contiguous().to(shape.device);
}

/// A tensor that gradients are wanted for.
Tensor leaf(const Tensor& values, const AttentionShape& shape) {
  return placed(values, shape).requires_grad_();
}

}  // namespace

double AttentionShape::scale() const {
  return 1 / std::sqrt(static_cast<double>(d_head));
}

AttentionInputs random_inputs(const AttentionShape& shape, uint64_t seed) {
  at::manual_seed(seed);
  const auto draw = [&] { return at::randn({shape.tokens(), shape.heads, shape.d_head}); };
  AttentionInputs inputs;
  inputs.q = draw();
  inputs.k = draw();
  inputs.v = draw();
  inputs.context_gradient = draw();
  return inputs;
}

AttentionChoice attention_choice(const ConfigNode& node, int64_t heads) {
  return resolve_attention(ConfigNode::map({{"decoder_self", node}}), 1, 1, heads).decoder_self.front();
}

AttentionOp::AttentionOp(const AttentionChoice& choice, const AttentionShape& shape, const AttentionInputs& inputs)
    : choice_(choice),
      context_gradient_(inputs.context_gradient.reshape({shape.tokens(), shape.heads * shape.d_head}).to(shape.device)),
      numbers_(make_row_numbers(*choice.type, shape.heads, shape.heads * shape.d_head)),
      norm_(make_attention_norm(choice.norm, choice.norm_options, shape.heads * shape.d_head, /*key=*/1)) {
  const RaggedShape sentences =
      RaggedShape::of_lengths(std::vector<int32_t>(static_cast<size_t>(shape.sentences), static_cast<int32_t>(shape.length)));
  if (numbers_) numbers_->to(shape.device);
  norm_->to(shape.device);
  call_.q = leaf(inputs.q, shape);
  call_.k = leaf(inputs.k, shape);
  call_.v = leaf(inputs.v, shape);
  call_.queries = std::make_shared<const RaggedShape>(sentences);
  call_.keys = std::make_shared<const KeyRange>(KeyRange::of(sentences));
  call_.causal = shape.is_causal;
  call_.scale = shape.scale();
  call_.type = choice_.type.get();
  if (choice.norm == "none") context_gradient_ = context_gradient_.to(shape.dtype);
}

void AttentionOp::run() {
  for (Tensor* input : {&call_.q, &call_.k, &call_.v}) input->mutable_grad() = Tensor();
  context(nullptr).backward(context_gradient_);
}

double AttentionOp::zero_share() {
  const at::NoGradGuard no_gradients;
  ZeroCounter zeros;
  context(&zeros);
  return zeros.share();
}

/// [T, H * d], after the norm. Norms are in float.
Tensor AttentionOp::context(AttentionProbe* probe) {
  call_.numbers.clear();
  if (numbers_) {
    const Tensor x = call_.q.detach().to(at::kFloat).reshape(context_gradient_.sizes());  // stands in for the layer's input
    for (const RowNumber& number : numbers_->forward(x)) call_.numbers.push_back(number.values);
  }
  ForwardContext moment;
  moment.training = true;
  moment.probe = probe;
  const Tensor heads = attention(call_, moment).view(context_gradient_.sizes());
  return choice_.norm == "none" ? heads : norm_->forward(heads.to(at::kFloat));
}

AtenSoftmaxOp::AtenSoftmaxOp(const AttentionShape& shape, const AttentionInputs& inputs) : is_causal_(shape.is_causal) {
  const auto by_heads = [&](const Tensor& rows) {
    return rows.reshape({shape.sentences, shape.length, shape.heads, shape.d_head}).transpose(1, 2);
  };
  q_ = leaf(by_heads(inputs.q), shape);
  k_ = leaf(by_heads(inputs.k), shape);
  v_ = leaf(by_heads(inputs.v), shape);
  context_gradient_ = placed(by_heads(inputs.context_gradient), shape);
}

void AtenSoftmaxOp::run() {
  for (Tensor* input : {&q_, &k_, &v_}) input->mutable_grad() = Tensor();
  at::scaled_dot_product_attention(q_, k_, v_, {}, /*dropout_p=*/0, is_causal_).backward(context_gradient_);
}

namespace {

constexpr int kHalvings = 24;
constexpr double kNearEnough = 0.001;

/// Changes the inputs so that scores become factor * score + shift; a shift replaces the first feature of each head.
AttentionInputs with_scores_changed(const AttentionInputs& inputs, const AttentionShape& shape, double factor, double shift) {
  AttentionInputs changed = inputs;
  changed.q = inputs.q * factor;
  if (shift == 0) return changed;
  changed.k = inputs.k.clone();
  changed.q.select(2, 0).fill_(shift / shape.scale());
  changed.k.select(2, 0).fill_(1);
  return changed;
}

AttentionInputs first_sentence(const AttentionInputs& inputs, const AttentionShape& shape) {
  const auto first = [&](const Tensor& rows) { return rows.narrow(0, 0, shape.length); };
  return {first(inputs.q), first(inputs.k), first(inputs.v), first(inputs.context_gradient)};
}

/// Factor and shift of the scores at `strength`, 0 to 1: the more of it, the more zeros. Between hardly any and nearly all of them.
AttentionInputs at_strength(double strength, const AttentionType& type, const AttentionShape& shape, const AttentionInputs& inputs) {
  constexpr double kLargestShift = 16, kLeastFactor = 1e-5, kLargestFactor = 1e3;
  if (!type.entry().info.rows_sum_to_one) return with_scores_changed(inputs, shape, 1, kLargestShift * (1 - 2 * strength));
  return with_scores_changed(inputs, shape, kLeastFactor * std::pow(kLargestFactor / kLeastFactor, strength), 0);
}

ConfigNode with_k(const ConfigNode& attention, int64_t k) {
  ConfigNode node = attention.is_scalar() ? ConfigNode::map({{"type", attention}}, attention.place()) : attention;
  for (const char* key : {"k", "ratio", "floor"}) node.erase(key);
  node.set("k", ConfigNode::scalar(std::to_string(k)));
  return node;
}

double zero_share_of(const AttentionChoice& choice, AttentionShape shape, const AttentionInputs& inputs) {
  const AttentionInputs first = first_sentence(inputs, shape);
  shape.sentences = 1;
  shape.dtype = at::kFloat;
  shape.device = at::kCPU;
  return AttentionOp(choice, shape, first).zero_share();
}

/// Top-k's zeros are a matter of k alone: the larger it is, the fewer.
SparseScores with_nearest_k(const ConfigNode& attention, const AttentionShape& shape, const AttentionInputs& inputs, double zeros) {
  const auto with = [&](int64_t k) {
    const ConfigNode node = with_k(attention, k);
    return SparseScores{node, inputs, zero_share_of(attention_choice(node, shape.heads), shape, inputs)};
  };
  int64_t low = 1, high = shape.length;
  SparseScores most = with(low), fewest = with(high);
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    const SparseScores found = with(middle);
    (found.zero_share < zeros ? high : low) = middle;
    (found.zero_share < zeros ? fewest : most) = found;
  }
  return most.zero_share - zeros < zeros - fewest.zero_share ? most : fewest;
}

}  // namespace

bool can_give_zeros(const AttentionType& type) {
  return type.entry().is_sparse(type.options());
}

SparseScores sparse_scores(const ConfigNode& attention, const AttentionShape& shape, const AttentionInputs& inputs, double zeros) {
  const AttentionChoice choice = attention_choice(attention, shape.heads);
  if (choice.type->name() == "topk") return with_nearest_k(attention, shape, inputs, zeros);
  SparseScores found = {attention, inputs};
  double low = 0, high = 1;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    found.inputs = at_strength(middle, *choice.type, shape, inputs);
    found.zero_share = zero_share_of(choice, shape, found.inputs);
    if (std::abs(found.zero_share - zeros) < kNearEnough) break;
    (found.zero_share < zeros ? low : high) = middle;
  }
  return found;
}

}  // namespace lacuna
