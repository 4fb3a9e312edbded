#include "kernels/dropout.h"

#include <cmath>

#include "base/device.h"
#include "kernels/dropout_factors.h"
#include "kernels/row_tensors.h"
#include "kernels/shape_lists.h"

namespace lacuna {
namespace {

Tensor factors_on_gpu(const Dropout& dropout, int64_t columns, at::Device device) {
  const Tensor ones = at::ones({dropout.shape->num_tokens(), columns}, at::TensorOptions(at::kFloat).device(device));
  Tensor factors = at::empty_like(ones);
  const DropRows<float> args = {columns, data_of<float>(ones), dropout.rows(device), mutable_data_of<float>(factors)};
  with_gpu_kernels(ones, [&](const gpu::Kernels& kernels, void* stream) { return kernels.drop(args, ones.size(0), stream); });
  return factors;
}

Tensor factors_on_cpu(const Dropout& dropout, int64_t columns) {
  Tensor factors = at::empty({dropout.shape->num_tokens(), columns}, at::kDouble);
  const FeatureBlocks features = {columns};
  const DropoutRows rows = dropout.rows();
  double* const all = factors.mutable_data_ptr<double>();
  for_parts(factors.size(0), kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const DroppedRow dropped(rows, row);
      for (int64_t block = 0; block < features.count(); ++block) {
        const PhiloxBlock bits = dropped.draw(block);
        features.for_each(block, [&](int64_t i, int64_t half) { all[row * columns + i] = dropped.factor<double>(bits, half); });
      }
    }
  });
  return factors;
}

}  // namespace

DropoutRows Dropout::rows(at::Device device) const {
  DropoutRows rows;
  rows.threshold = static_cast<uint32_t>(std::lround(rate * 65536));
  if (rows.threshold == 0) return rows;
  rows.key = key;
  rows.scale = 65536.0 / (65536.0 - rows.threshold);
  rows.sentences = shape->num_sentences();
  if (device.is_cpu()) {
    rows.offsets = shape->offsets().data();
    rows.ids = shape->ids().data();
  } else {
    const ShapeLists lists = lists_on(device, shape);  // which are kept
    rows.offsets = lists.offsets.const_data_ptr<int32_t>();
    rows.ids = lists.ids.const_data_ptr<int64_t>();
  }
  return rows;
}

Tensor dropout_factors(const Dropout& dropout, int64_t columns, const at::TensorOptions& options) {
  if (dropout.rows().threshold == 0) return at::ones({dropout.shape ? dropout.shape->num_tokens() : 1, columns}, options);
  const bool has_kernels = gpu::kernels_for(options.device().is_cuda()) != nullptr;
  return (has_kernels ? factors_on_gpu(dropout, columns, options.device()) : factors_on_cpu(dropout, columns)).to(options);
}

}  // namespace lacuna
