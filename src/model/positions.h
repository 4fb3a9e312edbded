#pragma once

#include <torch/nn/module.h>

#include <mutex>

#include "config/options.h"
#include "model/parameter_path.h"

namespace lacuna {

/// What tells the model where in its sentence a token stands: a vector of D features for each position, added to the embedding.
///
///   sinusoidal   sin and cos of position / 10000^(2i/D), for i < D/2, in turn (interleaved) or all sines first (concatenated); any length
///   learned      a parameter `weight` [max_positions, D], drawn from a normal distribution with standard deviation D^-1/2
///   none         nothing
class PositionTable : public torch::nn::Module {
 public:
  PositionTable(const ModelOptions& options, const ParameterPath& path);
  /// [P, D] with P >= count in the type and on the device of `like`; undefined for `none`. Throws DataError if a learned table has fewer
  /// positions.
  Tensor table(int64_t count, const Tensor& like);
  /// Longest sentence; 0 = no limit.
  int64_t limit() const { return weight_.defined() ? weight_.size(0) : 0; }

 private:
  Positions kind_;
  PositionLayout layout_;
  int64_t d_model_;
  Tensor weight_;
  std::mutex mutex_;  // several translators may share a model
  Tensor sinusoids_;  // as far as they were needed; no parameter, not saved
};

/// [count, d_model] of double.
Tensor sinusoidal_positions(int64_t count, int64_t d_model, PositionLayout layout);

}  // namespace lacuna
