#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/safetensors.h"
#include "kernels/rounded_copies.h"
#include "ranks/slices.h"
#include "train/adam.h"

namespace lacuna {

/// Parameters by name.
using NamedParameters = std::vector<std::pair<std::string, Tensor>>;

/// Parameters that are updated together: with a norm, clipping and a count of updates of their own.
struct ParameterGroup {
  std::string name;
  NamedParameters parameters;
};

/// A model's parameters moved into one buffer, group after group, so that one pass over memory updates a group. The
/// model's tensors become views of it. Gradients stay where the backward pass allocates them, in memory that the
/// forward pass has held until then.
class FlatParameters {
 public:
  /// The part of the buffer that a group has.
  struct Range {
    std::string name;
    int64_t begin, end;
  };

  /// The parameters, of one type and device; one that stands under several names counts once, in its first group.
  explicit FlatParameters(const std::vector<ParameterGroup>& groups);
  /// Puts all parameters into a single group, `main`.
  explicit FlatParameters(const NamedParameters& parameters) : FlatParameters(std::vector<ParameterGroup>{{"main", parameters}}) {}

  /// Values of all parameters [n]; between parameters there may be zeros, for alignment.
  const Tensor& values() const { return values_; }
  const std::vector<Range>& groups() const { return groups_; }
  /// The gradients of a group's parameters, in the order of the buffer.
  PlacedGradients gradients(const Range& group) const;
  /// The gradients of all parameters by name, in the order of the buffer; undefined ones are of parameters that no loss has reached.
  NamedParameters named_gradients() const;
  /// Moves a parameter's gradient into a buffer. Where it is undefined the buffer gets -0, which changes no value that it is added to.
  void take_gradient(size_t parameter, const Tensor& buffer) const;
  /// Returns the parts of the parameters that lie in elements `begin` to `end` of a buffer of gradients, placed from `begin` on.
  PlacedGradients placed(const Tensor& gradients, int64_t begin, int64_t end) const;
  /// Returns the first element of each chunk of a group (train/adam.h), and the group's end.
  std::vector<int64_t> chunks(const Range& group) const;
  /// Undefines the gradients of a group.
  void clear_gradients(const Range& group);
  /// Number of elements of all parameters.
  int64_t num_parameters() const { return num_parameters_; }
  /// Number of tensors: of parameters in the order of the buffer.
  size_t num_tensors() const { return slots_.size(); }
  const Tensor& tensor(size_t parameter) const { return slots_[parameter].parameter; }
  Slice place(size_t parameter) const { return {slots_[parameter].begin, slots_[parameter].begin + slots_[parameter].parameter.numel()}; }

  /// Returns the place of a parameter in the buffer. Throws ShapeError if there is none of that name.
  Slice place_of(const std::string& name) const;
  /// Returns a buffer of zeros laid out like the values: an optimizer's state.
  Tensor new_buffer() const;
  /// Returns views of a buffer, one for each parameter, under prefix + name.
  NamedTensors views(const Tensor& buffer, const std::string& prefix = "") const;
  /// Copies named tensors into a buffer. Throws CheckpointError with `place` if one is missing or of another shape.
  void load(const Tensor& buffer, const NamedTensors& tensors, const std::string& prefix, const std::string& place) const;
  /// Tells autograd that the values have changed.
  void mark_changed() const;

  /// Keeps the values in bf16, too, where products find them (kernels/rounded_copies.h): for whoever writes both.
  void keep_rounded();
  /// The values in bf16 [n]; undefined unless they are kept.
  const Tensor& rounded() const { return rounded_; }
  /// Rounds a group's values anew where anyone but their keeper has written them since they were last noted.
  void renew_rounded(const Range& group) const;
  /// Says that a group's values in bf16 are those of its parameters now.
  void note_rounded(const Range& group) const;

 private:
  struct Slot {
    std::string name;
    Tensor parameter;
    int64_t begin = 0;
    Tensor rounded = {};  ///< its values in bf16; undefined unless they are kept
  };

  std::vector<Slot> slots_;
  std::vector<Range> groups_;
  Tensor values_, rounded_;
  std::unique_ptr<RoundedCopies> copies_;
  int64_t num_parameters_ = 0;
};

}  // namespace lacuna
