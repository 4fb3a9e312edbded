#include "kernels/dropout.h"

#include <algorithm>
#include <cmath>

#include "kernels/dropout_factors.h"
#include "kernels/row_tensors.h"

namespace lacuna {
namespace {

/// What writes factors into the memory of a GPU; null in builds without CUDA.
using GpuFactorWriter = const char* (*)(const DropoutFactors<float>& factors, int64_t rows, void* stream);
GpuFactorWriter gpu_factor_writer() {
#if LACUNA_CUDA
  return write_dropout_factors_on_gpu;
#else
  return nullptr;
#endif
}

/// The list in a GPU's memory; nobody waits until it is there.
template <class X>
Tensor list_on_gpu(const std::vector<X>& list, at::Device device) {
  constexpr at::ScalarType type = c10::CppTypeToScalarType<X>::value;
  const Tensor here = at::empty({static_cast<int64_t>(list.size())}, at::TensorOptions(type).pinned_memory(true));
  std::copy(list.begin(), list.end(), here.mutable_data_ptr<X>());
  return here.to(device, type, /*non_blocking=*/true);
}

Tensor factors_on_gpu(GpuFactorWriter writer, const Dropout& dropout, int64_t columns, at::Device device) {
  const c10::DeviceGuard guard(device);
  const Tensor offsets = list_on_gpu(dropout.shape->offsets(), device), ids = list_on_gpu(dropout.shape->ids(), device);
  Tensor factors = at::empty({dropout.shape->num_tokens(), columns}, at::TensorOptions(at::kFloat).device(device));
  DropoutRows rows = dropout.rows();
  rows.offsets = offsets.const_data_ptr<int32_t>();
  rows.ids = ids.const_data_ptr<int64_t>();
  const DropoutFactors<float> args = {.columns = columns, .dropout = rows, .factors = factors.mutable_data_ptr<float>()};
  void* const stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
  if (const char* const error = writer(args, factors.size(0), stream)) throw MachineError(std::string("the GPU refused dropout: ") + error);
  return factors;
}

Tensor factors_on_cpu(const Dropout& dropout, int64_t columns) {
  Tensor factors = at::empty({dropout.shape->num_tokens(), columns}, at::kDouble);
  const DropoutFactors<double> args = {.columns = columns, .dropout = dropout.rows(), .factors = factors.mutable_data_ptr<double>()};
  for_parts(factors.size(0), kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t block = 0; block < args.blocks(); ++block) args.write(row, block);
  });
  return factors;
}

}  // namespace

DropoutRows Dropout::rows() const {
  DropoutRows rows;
  rows.threshold = static_cast<uint32_t>(std::lround(rate * 65536));
  if (rows.threshold == 0) return rows;
  rows.key = key;
  rows.scale = 65536.0 / (65536.0 - rows.threshold);
  rows.offsets = shape->offsets().data();
  rows.ids = shape->ids().data();
  rows.sentences = shape->num_sentences();
  return rows;
}

Tensor dropout_factors(const Dropout& dropout, int64_t columns, const at::TensorOptions& options) {
  if (dropout.rows().threshold == 0) return at::ones({dropout.shape ? dropout.shape->num_tokens() : 1, columns}, options);
  const GpuFactorWriter writer = gpu_factor_writer();
  const bool is_on_gpu = writer != nullptr && options.device().is_cuda();
  return (is_on_gpu ? factors_on_gpu(writer, dropout, columns, options.device()) : factors_on_cpu(dropout, columns)).to(options);
}

}  // namespace lacuna
