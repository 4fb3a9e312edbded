#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/safetensors.h"
#include "train/adam.h"

namespace lacuna {

/// A model's parameters moved into one buffer, so that one pass over memory updates them all. Those of mask models (attention type
/// calibrated), which have an objective of their own, stand at the end.
///
/// The tensors that the model holds become views of the buffer: nothing else about the model changes. Gradients stay where the backward
/// pass makes them, in memory that the forward pass has held until then.
class FlatParameters {
 public:
  /// The parameters by name, as the model has them; one that stands under several names counts once. All of one type and device.
  explicit FlatParameters(const std::vector<std::pair<std::string, Tensor>>& parameters);

  /// Values of all parameters [n]; between parameters there may be a few zeros, for alignment.
  const Tensor& values() const { return values_; }
  /// Of the parameters from `begin` to `end` of the buffer, in its order.
  PlacedGradients gradients(int64_t begin, int64_t end) const;
  /// Undefines these.
  void clear_gradients(int64_t begin, int64_t end);
  int64_t num_parameters() const { return num_parameters_; }
  /// Where in the buffer the mask models begin; their size if there are none.
  int64_t masks_begin() const { return masks_begin_; }

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
  Tensor values_;
  int64_t num_parameters_ = 0, masks_begin_ = 0;
};

}  // namespace lacuna
