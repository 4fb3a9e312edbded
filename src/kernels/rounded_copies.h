#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <unordered_map>

namespace lacuna {

/// Copies of parameters in bf16, which whoever writes the parameters keeps beside them: products need not round them then. A copy counts
/// until its parameter is written by anyone else, which LibTorch's version of the parameter tells.
class RoundedCopies {
 public:
  RoundedCopies();
  ~RoundedCopies();
  RoundedCopies(const RoundedCopies&) = delete;
  RoundedCopies& operator=(const RoundedCopies&) = delete;

  /// Says that `copy` holds the values that the parameter has now.
  void set_current(const at::Tensor& parameter, const at::Tensor& copy);
  /// Returns the copy of a parameter's present values; undefined if there is none.
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
