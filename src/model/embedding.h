#pragma once

#include <memory>
#include <vector>

#include "base/ragged.h"
#include "model/dropout_site.h"
#include "model/linear.h"
#include "model/positions.h"

namespace lacuna {

/// Vectors of D features for V tokens: parameter `weight` [V, D], drawn from a normal distribution with standard deviation D^-1/2. Also the
/// output projection.
class EmbeddingTable : public torch::nn::Module {
 public:
  EmbeddingTable(int64_t vocab_size, int64_t d_model, const ParameterPath& path);
  const Tensor& weight() const { return weight_; }
  /// What decoder output is multiplied with to give logits, without gradients.
  std::shared_ptr<const PackedWeight> projection() { return packed_.of(weight_); }
  PackedCache& packed() { return packed_; }

 private:
  Tensor weight_;
  PackedCache packed_;
};

/// dropout(sqrt(D) * table[ids] + position): what a stack reads (Vaswani et al. 2017, section 3.4).
class Embedding {
 public:
  Embedding(std::shared_ptr<EmbeddingTable> table, std::shared_ptr<PositionTable> positions, double dropout, Stack stack)
      : table_(std::move(table)), positions_(std::move(positions)), dropout_(dropout), stack_(stack) {}

  /// tokens [T] int64 -> [T, D], each sentence from position 0.
  Ragged forward(const Ragged& tokens, const ForwardContext& context);
  /// tokens [N] int64, each at a position of its own -> [N, D].
  Tensor at_positions(const Tensor& tokens, const std::vector<int32_t>& positions);

 private:
  Tensor look_up(const Tensor& tokens, const std::vector<int32_t>& positions, const Dropout& dropout);

  std::shared_ptr<EmbeddingTable> table_;
  std::shared_ptr<PositionTable> positions_;
  double dropout_;
  Stack stack_;
};

}  // namespace lacuna
