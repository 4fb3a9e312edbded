#pragma once

// Glue between tensors and the row loops. Included by sources that have base/libtorch.h precompiled.

#include "base/device.h"
#include "base/error.h"
#include "kernels/dropout.h"
#include "kernels/gpu/kernels.h"
#include "kernels/parallel.h"
#include "kernels/row_kernels.h"

namespace lacuna {

/// Rows of [T, ...] in one task of a parallel loop.
inline constexpr int64_t kRowsPerTask = 16;

template <class T>
const T* data_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<T>() : nullptr;
}
template <class T>
T* mutable_data_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<T>() : nullptr;
}

/// Returns nullopt for an undefined tensor, as operators and autograd functions expect it.
inline std::optional<at::Tensor> optional_of(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

/// Throws ShapeError if one of the ids is not below `rows`, the size of the vocabulary.
inline void require_ids(const int64_t* ids, int64_t count, int64_t rows) {
  for (int64_t i = 0; i < count; ++i)
    if (ids[i] < 0 || ids[i] >= rows)
      throw ShapeError("token id " + std::to_string(ids[i]) + " in a vocabulary of " + std::to_string(rows));
}

/// Calls `kernel(args, begin, end)` for all rows, on all threads.
template <class Kernel, class Args>
void for_rows(Kernel kernel, const Args& args, int64_t rows) {
  for_parts(rows, kRowsPerTask, [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
}

/// Returns the number of blocks of kRowsPerSum rows.
inline int64_t sum_blocks(int64_t rows) {
  return (rows + kRowsPerSum - 1) / kRowsPerSum;
}

/// Calls `kernel(args, begin, end)` for each block of kRowsPerSum rows, on all threads.
template <class Kernel, class Args>
void for_sum_blocks(Kernel kernel, const Args& args, int64_t rows) {
  for_parts(sum_blocks(rows), 1, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) kernel(args, block * kRowsPerSum, std::min(rows, (block + 1) * kRowsPerSum));
  });
}

/// Returns the data of a bf16 tensor as bits.
inline uint16_t* bf16_bits_of(const at::Tensor& tensor) {
  return static_cast<uint16_t*>(tensor.mutable_data_ptr());
}
inline const uint16_t* const_bf16_bits_of(const at::Tensor& tensor) {
  return static_cast<const uint16_t*>(tensor.const_data_ptr());
}

/// Calls `f` with a value of the tensor's type, float or double.
template <class F>
auto with_scalar_of(const at::Tensor& tensor, F f) {
  if (tensor.scalar_type() == at::kDouble) return f(double());
  return f(float());
}

/// Returns whether the tensor goes the way of a GPU's tensors: it is there, or lies on the CPU while a test emulates GPUs.
inline bool is_on_gpu(const at::Tensor& tensor) {
  return !tensor.is_cpu() || gpu::kernels_for(false) != nullptr;
}
/// Returns whether the row loops take the tensor: float or double on the CPU.
inline bool has_row_loops(const at::Tensor& tensor) {
  return !is_on_gpu(tensor) && (tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble);
}
/// Returns whether the GPU's row kernels take the tensor: float on a GPU.
inline bool has_gpu_rows(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat && is_on_gpu(tensor) && gpu::kernels_for(tensor.is_cuda()) != nullptr;
}
/// Calls start(kernels, stream) for a tensor's device, for which there must be kernels.
template <class F>
void with_gpu_kernels(const at::Tensor& tensor, const F& start) {
  on_gpu(tensor.device(), [&](void* stream) { return start(*gpu::kernels_for(tensor.is_cuda()), stream); });
}
/// Returns whether either takes the tensor. All others go to the references.
inline bool has_row_kernels(const at::Tensor& tensor) {
  return has_row_loops(tensor) || has_gpu_rows(tensor);
}

struct KeptDropout : torch::CustomClassHolder {
  explicit KeptDropout(Dropout kept) : dropout(std::move(kept)) {}
  Dropout dropout;
};

/// Saves a forward pass's dropout for its backward pass, under a name where there are several.
inline void keep_dropout(torch::autograd::AutogradContext& context, const Dropout& dropout, const std::string& name = "dropout") {
  context.saved_data[name] = c10::IValue::make_capsule(c10::make_intrusive<KeptDropout>(dropout));
}
inline Dropout kept_dropout(torch::autograd::AutogradContext& context, const std::string& name = "dropout") {
  return static_cast<const KeptDropout&>(*context.saved_data[name].toCapsule()).dropout;
}

}  // namespace lacuna
