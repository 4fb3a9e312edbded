#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/safetensors.h"

namespace lacuna {

/// A model's parameters moved into one buffer, and their gradients into another, so that one pass over memory updates them all. Those of
/// mask models (attention type calibrated), which have an objective of their own, stand at the end.
///
/// The tensors that the model holds become views of the buffers: nothing else about the model changes. Gradients must be cleared by
/// `zero_gradients`, never by undefining them.
class FlatParameters {
 public:
  /// The parameters by name, as the model has them; one that stands under several names counts once. All of one type and device.
  explicit FlatParameters(const std::vector<std::pair<std::string, Tensor>>& parameters);

  /// Values and gradients of all parameters [n]; between parameters there may be a few zeros, for alignment.
  const Tensor& values() const { return values_; }
  const Tensor& gradients() const { return gradients_; }
  int64_t num_parameters() const { return num_parameters_; }
  /// Where in the buffers the mask models begin; their size if there are none.
  int64_t masks_begin() const { return masks_begin_; }

  void zero_gradients();
  /// A buffer of zeros beside the values: an optimizer's state.
  Tensor new_buffer() const;
  /// Views of a buffer, one for each parameter, under prefix + name.
  NamedTensors views(const Tensor& buffer, const std::string& prefix = "") const;
  /// Copies named tensors into a buffer. Throws CheckpointError with `place` if one is missing or of another shape.
  void load(const Tensor& buffer, const NamedTensors& tensors, const std::string& prefix, const std::string& place) const;
  /// Tells autograd that the values were changed behind its back.
  void mark_changed() const;

 private:
  struct Slot {
    std::string name;
    Tensor parameter;
    int64_t begin = 0;
  };

  std::vector<Slot> slots_;
  Tensor values_, gradients_;
  int64_t num_parameters_ = 0, masks_begin_ = 0;
};

}  // namespace lacuna
