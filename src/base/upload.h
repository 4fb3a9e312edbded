#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/device.h"

namespace lacuna {

/// Lists that are copied to a device as one block of memory.
class Upload {
 public:
  /// Copies a list; send() sets `there` to its address on the device.
  template <class X>
  void add(const std::vector<X>& list, const X*& there) {
    places_.push_back([&there, offset = take(list)](const at::Tensor& block) {
      there = reinterpret_cast<const X*>(static_cast<const uint8_t*>(block.const_data_ptr()) + offset);
    });
  }
  /// Copies a list; send() sets `there` to it as a tensor [n] on the device, a part of the block.
  template <class X>
  void add(const std::vector<X>& list, at::Tensor& there) {
    places_.push_back([&there, offset = take(list), size = static_cast<int64_t>(list.size() * sizeof(X))](const at::Tensor& block) {
      there = block.narrow(0, offset, size).view(c10::CppTypeToScalarType<X>::value);
    });
  }
  /// send() sets `there` to the whole block, which addresses in it need.
  void add_block(at::Tensor& there) {
    places_.push_back([&there](const at::Tensor& block) { there = block; });
  }
  /// Holds what has the places that send() writes to.
  void hold(std::shared_ptr<const void> owner) { owners_.push_back(std::move(owner)); }
  /// Copies the lists. To be called once.
  void send(at::Device device) {
    const at::Tensor block = tensor_of(bytes_, device);
    for (const auto& place : places_) place(block);
  }

 private:
  /// Returns the place of the list's bytes.
  template <class X>
  int64_t take(const std::vector<X>& list) {
    const auto offset = static_cast<int64_t>(bytes_.size());
    const auto* first = reinterpret_cast<const uint8_t*>(list.data());
    bytes_.insert(bytes_.end(), first, first + list.size() * sizeof(X));
    bytes_.resize((bytes_.size() + 15) / 16 * 16);
    return offset;
  }

  std::vector<uint8_t> bytes_;
  std::vector<std::function<void(const at::Tensor&)>> places_;
  std::vector<std::shared_ptr<const void>> owners_;
};

}  // namespace lacuna
