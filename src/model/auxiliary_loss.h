#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "attention/forward_context.h"

namespace lacuna {

using at::Tensor;

/// What an AuxiliaryLoss comes to on a batch.
struct AuxiliarySums {
  Tensor objective;  ///< to be minimized: nats a target token times the tokens; scalar with gradients; undefined = it was not due
  /// By the names of metrics.jsonl, each summed over the target tokens: scalars without gradients.
  std::vector<std::pair<std::string, Tensor>> values = {};
};

/// A second objective beside the translation loss, with parameters of its own: they get gradients from it alone, and no
/// others do. The optimizer keeps them in a group of their own.
class AuxiliaryLoss {
 public:
  /// The label-smoothed loss of the batch in nats, summed over its target tokens: the decoder once more over the same
  /// memory, to which no gradient flows, with the same dropout.
  using DecoderLoss = std::function<Tensor(const ForwardContext& context)>;

  virtual ~AuxiliaryLoss() = default;
  /// True if it trains the parameter of this name.
  virtual bool trains(const std::string& parameter) const = 0;
  /// True if the update `step` includes it.
  virtual bool is_due(int64_t step) const = 0;
  virtual AuxiliarySums sums(const DecoderLoss& decoder_loss, int64_t tokens, const ForwardContext& context) = 0;
};

}  // namespace lacuna
