#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attention/attention.h"

namespace lacuna {

/// A loss by which one head of cross attention learns to attend as tokens are linked: guided alignment (Chen et al. 2016,
/// arXiv:1607.01628). Attach one to ForwardContext::guide for one pass of the decoder. For each linked target token, with t even over the
/// source tokens that it is linked to, z the scores of the step that predicts it, and p the weights before dropout:
///
///   L = Omega(t) - Omega(p) + (p - t).z,      dL/dz = p - t
///
/// the Fenchel-Young loss that belongs to the attention's type (Blondel, Martins & Niculae 2020, arXiv:1901.02324, eq. 6 and 8). With
/// Omega(p) = sum_j p_j ln p_j, softmax's, it is the divergence of p from t, whose gradient is that of cross-entropy; entmax's is
/// sum_j (p_j^alpha - p_j) / (alpha (alpha - 1)), that of rectified scores |p|² / 2. So a linked key learns although its weight is zero.
/// Numbers that a type learns (entmax's alpha) are constants here.
class AlignmentGuide {
 public:
  /// `weight` times the loss of each linked token is summed. `links`: rows of queries and rows of keys, (key, query).
  AlignmentGuide(AlignmentSource guided, double weight, std::span<const std::pair<int32_t, int32_t>> links);

  bool wants(int layer) const { return layer == guided_.layer; }
  /// Computes the loss of a cross attention of the guided layer.
  void see(const AttentionCall& call, const ForwardContext& context);
  /// Returns the loss in nats times the weight, summed over linked target tokens: a double with gradients for queries and keys; undefined
  /// if nothing was seen or is linked.
  const Tensor& loss() const { return loss_; }

 private:
  AlignmentSource guided_;
  double weight_;
  std::vector<std::pair<int32_t, int32_t>> links_;  // by query
  Tensor loss_;
};

/// Returns why no head of this type can be guided, for a message; empty if one can.
std::string reason_not_to_guide(const AttentionType& type);

}  // namespace lacuna
