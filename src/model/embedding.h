#pragma once

#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include "base/ragged.h"
#include "config/options.h"
#include "kernels/embedding.h"
#include "model/dropout_site.h"
#include "model/linear.h"
#include "model/parameter_path.h"

namespace lacuna {

/// Vectors of D features for V tokens: parameter `weight` [V, D], drawn from a normal distribution with standard
/// deviation D^-1/2. Also the output projection.
class EmbeddingTable : public torch::nn::Module {
 public:
  EmbeddingTable(int64_t vocab_size, int64_t d_model, const ParameterPath& path);
  const Tensor& weight() const { return weight_; }
  /// Returns the packed table, for logits without gradients.
  std::shared_ptr<const PackedWeight> projection() { return packed_.of(weight_); }
  PackedCache& packed() { return packed_; }
  /// Rounds the table itself, and later products with it; on a GPU nothing.
  void round_to(Precision precision);

 private:
  Tensor weight_;
  PackedCache packed_;
};

/// The output projection: logits of hidden [T, D] are hidden x weight^T + bias [T, V], with a table's weight.
struct OutputProjection {
  std::shared_ptr<EmbeddingTable> table;
  Tensor bias;  ///< [V]; undefined = none
};

/// A vector of D features for each position in a sentence, which is added to the embeddings of the tokens there.
///
///   sinusoidal   sin and cos of position / 10000^(i/s), for i < D/2, in turn (interleaved) or all sines first (concatenated); s is D/2
///                (paper) or D/2 - 1 (tensor2tensor), and a sentence's first token is at position_start; any length
///   learned      a parameter `weight` [max_positions, D], drawn from a normal distribution with standard deviation D^-1/2
///   rope, none   nothing
class PositionTable : public torch::nn::Module {
 public:
  PositionTable(const ModelOptions& options, const ParameterPath& path);
  /// Returns the vectors of the first positions: [P, D] with P >= count, in the type and on the device of `like`;
  /// undefined for `none`. Throws DataError if a learned table has fewer positions.
  Tensor table(int64_t count, const Tensor& like);
  /// Returns the length of the longest sentence; 0 = no limit.
  int64_t limit() const { return weight_.defined() ? weight_.size(0) : 0; }

 private:
  ModelOptions options_;
  Tensor weight_;
  std::mutex mutex_;  // several translators may share a model
  Tensor sinusoids_;  // of the positions needed so far; no parameter, not saved
};

/// Returns the sinusoids of a sentence's first positions: [count, d_model] double.
Tensor sinusoidal_positions(int64_t count, const ModelOptions& options);

/// The input of a stack: dropout(sqrt(D) * table[ids] + position) (Vaswani et al. 2017, section 3.4).
class Embedding {
 public:
  /// `zero_id`: an id whose vector is zero, whatever the table has; kNoId = none.
  Embedding(std::shared_ptr<EmbeddingTable> table, std::shared_ptr<PositionTable> positions, double dropout, Stack stack,
            int64_t zero_id = kNoId)
      : table_(std::move(table)), positions_(std::move(positions)), dropout_(dropout), stack_(stack), zero_id_(zero_id) {}

  /// Embeds tokens [T] int64 -> [T, D], each sentence from position 0.
  Ragged forward(const Ragged& tokens, const ForwardContext& context);
  /// Embeds tokens [N] int64, each at its own position -> [N, D].
  Tensor at_positions(const Tensor& tokens, const std::vector<int32_t>& positions, const Dropout& dropout = {});
  /// Does that on a GPU, without gradients, at positions [N] int32 below `count`.
  Tensor at_positions(const Tensor& tokens, const Tensor& positions, int64_t count);
  /// Does that without gradients on the CPU, with tables of float, and writes to `to` [N, D].
  void at_positions(const std::vector<int64_t>& tokens, const std::vector<int32_t>& positions, float* to);

 private:
  double scale() const { return std::sqrt(static_cast<double>(table_->weight().size(1))); }
  /// Returns the vectors of all positions up to the last of these.
  Tensor vectors_of(const std::vector<int32_t>& positions);
  /// Embeds tokens at `positions` [T] int32: rows of `vectors`.
  Tensor embedded(const Tensor& tokens, const Tensor& vectors, const Tensor& positions, const Dropout& dropout);

  std::shared_ptr<EmbeddingTable> table_;
  std::shared_ptr<PositionTable> positions_;
  double dropout_;
  Stack stack_;
  int64_t zero_id_;
};

}  // namespace lacuna
