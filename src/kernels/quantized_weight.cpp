#include "kernels/quantized_weight.h"

#include <cmath>
#include <limits>

#include "kernels/row_tensors.h"

namespace lacuna {
namespace {

/// The largest float that is `scale` when divided by 127; it is less than two steps above 127 * scale.
float largest_of_scale(float scale) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float largest = std::nextafter(std::nextafter(scale * kWeightLevels, kInfinity), kInfinity);
  while (largest / kWeightLevels > scale) largest = std::nextafter(largest, 0.f);
  return largest;
}

void dequantize_row(const int8_t* bytes, float scale, int64_t depth, float* to) {
  const float largest = largest_of_scale(scale);
  for (int64_t i = 0; i < depth; ++i) {
    const float product = static_cast<float>(bytes[i]) * scale;
    to[i] = std::abs(bytes[i]) == kWeightLevels ? std::copysign(largest, product) : product;
  }
}

}  // namespace

QuantizedWeight quantized(const Tensor& weight) {
  const Tensor rows = weight.detach().contiguous();
  const int64_t count = rows.size(0), depth = rows.size(1);
  const int64_t words = (depth + 4 * kWordsRead - 1) / (4 * kWordsRead) * kWordsRead;
  const Tensor values = at::empty({count, words}, at::kInt);
  QuantizedWeight result = {{}, at::empty({count}, at::kFloat)};
  const RowsToWords args = {Precision::kInt8,
                            /*is_weight=*/true,
                            depth,
                            words,
                            rows.const_data_ptr<float>(),
                            values.mutable_data_ptr<int32_t>(),
                            result.scales.mutable_data_ptr<float>(),
                            nullptr};
  packed_kernels(Precision::kInt8).front().to_words(args, 0, count);
  result.bytes = values.view(at::kChar).narrow(1, 0, depth).contiguous();
  return result;
}

Tensor dequantized(const QuantizedWeight& weight) {
  const int64_t count = weight.bytes.size(0), depth = weight.bytes.size(1);
  const Tensor bytes = weight.bytes.contiguous(), scales = weight.scales.contiguous();
  Tensor result = at::empty({count, depth}, at::kFloat);
  const auto* from = bytes.const_data_ptr<int8_t>();
  auto* to = result.mutable_data_ptr<float>();
  at::parallel_for(0, count, kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      dequantize_row(from + row * depth, scales.const_data_ptr<float>()[row], depth, to + row * depth);
  });
  return result;
}

Tensor rounded(const Tensor& weight, Precision precision) {
  if (precision == Precision::kInt8) return dequantized(quantized(weight));
  if (precision == Precision::kBf16) return weight.detach().to(at::kBFloat16).to(at::kFloat);
  return weight.detach();
}

}  // namespace lacuna
