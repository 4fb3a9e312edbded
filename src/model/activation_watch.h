#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace lacuna {

/// Sees what the layers of a forward pass compute, in their order.
class ActivationWatch {
 public:
  virtual ~ActivationWatch() = default;
  /// `what` is a module of src/model/README.md and which of its tensors: "encoder.layers.0.self_attention: queries".
  virtual void see(const std::string& what, const at::Tensor& values) = 0;
};

}  // namespace lacuna
