#include "train/flat_parameters.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace lacuna {
namespace {

constexpr int64_t kAlignment = 16;  ///< elements: a parameter starts on a cache line

Tensor view_of(const Tensor& buffer, int64_t begin, const Tensor& like) {
  return buffer.narrow(0, begin, like.numel()).view(like.sizes());
}

}  // namespace

FlatParameters::FlatParameters(const std::vector<ParameterGroup>& groups) {
  std::set<const void*> seen;
  int64_t size = 0;
  for (const ParameterGroup& group : groups) {
    const int64_t begin = size;
    for (const auto& [name, parameter] : group.parameters) {
      if (!seen.insert(parameter.unsafeGetTensorImpl()).second) continue;
      slots_.push_back({name, parameter, size});
      num_parameters_ += parameter.numel();
      size += (parameter.numel() + kAlignment - 1) / kAlignment * kAlignment;
    }
    groups_.push_back({group.name, begin, size});
  }
  if (slots_.empty()) throw ShapeError("a model without parameters cannot be trained");
  const at::NoGradGuard no_grad;
  values_ = at::zeros({size}, slots_.front().parameter.options().requires_grad(false));
  for (Slot& slot : slots_) {
    const Tensor value = view_of(values_, slot.begin, slot.parameter);
    value.copy_(slot.parameter);
    slot.parameter.set_data(value);
  }
}

PlacedGradients FlatParameters::gradients(const Range& group) const {
  PlacedGradients placed;
  for (const Slot& slot : slots_) {
    if (slot.begin < group.begin || slot.begin >= group.end) continue;
    const Tensor& gradient = slot.parameter.grad();
    placed.push_back({slot.begin, slot.parameter.numel(), gradient.defined() ? gradient.contiguous() : gradient});
  }
  return placed;
}

NamedParameters FlatParameters::named_gradients() const {
  NamedParameters named;
  named.reserve(slots_.size());
  for (const Slot& slot : slots_) named.emplace_back(slot.name, slot.parameter.grad());
  return named;
}

void FlatParameters::take_gradient(size_t parameter, const Tensor& buffer) const {
  const at::NoGradGuard no_grad;
  const Slot& slot = slots_[parameter];
  const Tensor view = view_of(buffer, slot.begin, slot.parameter);
  Tensor& gradient = slot.parameter.mutable_grad();
  if (gradient.defined())
    view.copy_(gradient);
  else
    view.fill_(-0.0);
  gradient = Tensor();
}

PlacedGradients FlatParameters::placed(const Tensor& gradients, int64_t begin, int64_t end) const {
  PlacedGradients placed;
  for (const Slot& slot : slots_) {
    const int64_t first = std::max(begin, slot.begin), last = std::min(end, slot.begin + slot.parameter.numel());
    if (first < last) placed.push_back({first - begin, last - first, gradients.slice(0, first, last)});
  }
  return placed;
}

std::vector<int64_t> FlatParameters::chunks(const Range& group) const {
  std::vector<int64_t> begins;
  for (const Slot& slot : slots_)
    if (slot.begin >= group.begin && slot.begin < group.end)
      for (int64_t offset = 0; offset < slot.parameter.numel(); offset += kChunk) begins.push_back(slot.begin + offset);
  begins.push_back(group.end);
  return begins;
}

Slice FlatParameters::place_of(const std::string& name) const {
  const auto slot = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& one) { return one.name == name; });
  if (slot == slots_.end()) throw ShapeError("the model has no parameter " + name + " to be trained");
  return {slot->begin, slot->begin + slot->parameter.numel()};
}

void FlatParameters::clear_gradients(const Range& group) {
  for (const Slot& slot : slots_)
    if (slot.begin >= group.begin && slot.begin < group.end) slot.parameter.mutable_grad() = Tensor();
}

Tensor FlatParameters::new_buffer() const {
  return at::zeros_like(values_);
}

NamedTensors FlatParameters::views(const Tensor& buffer, const std::string& prefix) const {
  NamedTensors named;
  for (const Slot& slot : slots_) named.emplace(prefix + slot.name, view_of(buffer, slot.begin, slot.parameter));
  return named;
}

void FlatParameters::load(const Tensor& buffer, const NamedTensors& tensors, const std::string& prefix, const std::string& place) const {
  for (const auto& [name, view] : views(buffer, prefix)) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) throw CheckpointError(place + ": the tensor " + name + " is missing; was it written by another model?");
    if (found->second.sizes() != view.sizes()) throw CheckpointError(place + ": the tensor " + name + " has the shape of another model");
    Tensor(view).copy_(found->second);
  }
  mark_changed();
}

void FlatParameters::mark_changed() const {
  for (const Slot& slot : slots_) slot.parameter.unsafeGetTensorImpl()->bump_version();
}

void FlatParameters::keep_rounded() {
  rounded_ = values_.to(at::kBFloat16);
  copies_ = std::make_unique<RoundedCopies>();
  for (Slot& slot : slots_) slot.rounded = view_of(rounded_, slot.begin, slot.parameter);
  for (const Range& group : groups_) note_rounded(group);
}

void FlatParameters::renew_rounded(const Range& group) const {
  if (!copies_) return;
  const bool are_current = std::all_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return slot.begin < group.begin || slot.begin >= group.end || RoundedCopies::of(slot.parameter).defined();
  });
  if (!are_current) rounded_.slice(0, group.begin, group.end).copy_(values_.slice(0, group.begin, group.end));
}

void FlatParameters::note_rounded(const Range& group) const {
  if (!copies_) return;
  for (const Slot& slot : slots_)
    if (slot.begin >= group.begin && slot.begin < group.end) copies_->set_current(slot.parameter, slot.rounded);
}

}  // namespace lacuna
