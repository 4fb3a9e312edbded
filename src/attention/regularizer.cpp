#include "attention/regularizer.h"

#include "base/device.h"

namespace lacuna {
namespace {

/// [T] for the tokens of `shape`: each sentence's share alike in the number of its target tokens.
Tensor target_tokens_of_each(const RaggedShape& shape, const RaggedShape& tgt, at::Device device) {
  std::vector<double> shares;
  for (int64_t b = 0; b < shape.num_sentences(); ++b)
    shares.insert(shares.end(), static_cast<size_t>(shape.length(b)), static_cast<double>(tgt.length(b)) / shape.length(b));
  return tensor_of(shares, device);
}

}  // namespace

void Regularizer::add(const RowNumber& number, const RaggedShapePtr& queries) {
  if (number.penalty == 0) return;
  terms_.push_back({number.penalty * number.values.to(at::kDouble).mean(-1), queries});
}

Tensor Regularizer::sum(const RaggedShape& tgt) const {
  Tensor total;
  for (const auto& [per_token, shape] : terms_) {
    const Tensor sum =
        per_token.dim() == 0 ? per_token * tgt.num_tokens() : (per_token * target_tokens_of_each(*shape, tgt, per_token.device())).sum();
    total = total.defined() ? total + sum : sum;
  }
  return total;
}

}  // namespace lacuna
