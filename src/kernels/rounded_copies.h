#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <unordered_map>

namespace lacuna {

/// Copies in bf16 of parameters, which whoever writes the parameters keeps beside them, and of rows that several layers read: products need
/// not round them then. A copy counts until its original is written by anyone else, which LibTorch's version of the tensor tells.
class RoundedCopies {
 public:
  RoundedCopies();
  ~RoundedCopies();
  RoundedCopies(const RoundedCopies&) = delete;
  RoundedCopies& operator=(const RoundedCopies&) = delete;

  /// Says that `copy` holds the values that the parameter has now.
  void set_current(const at::Tensor& parameter, const at::Tensor& copy);
  /// Makes a copy of values of float.
  void round(const at::Tensor& values);
  /// Returns the copy of a tensor's present values; undefined if there is none.
  static at::Tensor of(const at::Tensor& parameter);

 private:
  struct Copy {
    at::Tensor copy;
    const void* values;
    uint32_t version;
  };
  std::unordered_map<const c10::TensorImpl*, Copy> copies_;
};

}  // namespace lacuna
