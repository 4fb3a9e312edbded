#include "bench/sparse_scores.h"

#include <cmath>

#include "attention/registry.h"

namespace lacuna {
namespace {

constexpr int kHalvings = 24;
constexpr double kNearEnough = 0.001;

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
