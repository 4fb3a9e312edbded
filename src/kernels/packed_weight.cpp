#include "kernels/packed_weight.h"

#include <ATen/record_function.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/row_tensors.h"

namespace lacuna {

#define LACUNA_DECLARE(target)                                       \
  namespace target {                                                 \
  extern const PackedKernel kFloatKernel, kBf16Kernel, kBytesKernel; \
  }
LACUNA_DECLARE(avx2)
LACUNA_DECLARE(avxvnni)
LACUNA_DECLARE(avx512)
LACUNA_DECLARE(avx512_vnni)
LACUNA_DECLARE(avx512_bf16)
LACUNA_DECLARE(amx)
#undef LACUNA_DECLARE

namespace {

/// The least number of products of two words for which waking a thread pays.
constexpr int64_t kProductsPerTask = 1 << 17;

/// The number of products of bytes, 0 to 255 by -127 to 127, whose sum is exact in 32 bits.
constexpr int64_t kMostBytesInSum = INT32_MAX / (255 * 127);

int64_t rounded_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Returns the number of words of a row.
int64_t words_of_row(Precision precision, int64_t depth) {
  if (precision == Precision::kInt8) return rounded_up((depth + 3) / 4, kWordsRead);
  if (precision == Precision::kBf16) return rounded_up((depth + 1) / 2, kWordsRead);
  return depth;
}

Tensor plain_product(const Tensor& x, const Tensor& weight, const Tensor& bias, ProductEnd end) {
  Tensor result = at::linear(x, weight, optional_of(bias));
  switch (end) {
    case ProductEnd::kNone:
      break;
    case ProductEnd::kRelu:
      return at::relu(result);
    case ProductEnd::kGelu:
      return at::gelu(result);
    case ProductEnd::kSwish:
      return at::silu(result);
  }
  return result;
}

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

std::vector<PackedKernel> packed_kernels(Precision precision) {
  std::vector<PackedKernel> kernels;
  const auto add = [&](const PackedKernel& kernel) {
    if (cpu_has(kernel.target)) kernels.push_back(kernel);
  };
  if (precision == Precision::kInt8) {
    add(amx::kBytesKernel);
    add(avx512_vnni::kBytesKernel);
    add(avxvnni::kBytesKernel);
    add(avx512::kBytesKernel);
    add(avx2::kBytesKernel);
  } else if (precision == Precision::kBf16) {
    add(amx::kBf16Kernel);
    add(avx512_bf16::kBf16Kernel);
    add(avx512::kBf16Kernel);
    add(avx2::kBf16Kernel);
  } else {
    add(avx512::kFloatKernel);
    add(avx2::kFloatKernel);
  }
  return kernels;
}

PackedWeight::PackedWeight(const Tensor& weight, Precision precision, const PackedKernel* kernel)
    : precision_(precision), columns_(weight.size(0)), depth_(weight.size(1)) {
  if (!weight.is_cpu() || weight.scalar_type() != at::kFloat) {
    weight_ = weight.detach();
    return;
  }
  if (precision == Precision::kInt8 && depth_ > kMostBytesInSum)
    throw ConfigError("a weight of the model has " + std::to_string(depth_) + " inputs, and sums of int8 hold those of " +
                      std::to_string(kMostBytesInSum) + "; translate with --precision bf16 or fp32");
  kernel_ = kernel != nullptr ? *kernel : packed_kernels(precision).front();
  const auto [words, scales, zeros] = words_of(weight.detach().contiguous(), true);
  if (precision == Precision::kInt8 && kernel_.fit_short_sums != nullptr) {
    auto* const bytes = static_cast<int8_t*>(words.mutable_data_ptr());
    auto* const scale = scales.mutable_data_ptr<float>();
    at::parallel_for(0, columns_, kRowsPerTask, [&, count = words.size(1)](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) kernel_.fit_short_sums(bytes + row * count * 4, count, scale[row]);
    });
  }
  lay_out(words);
  if (precision != Precision::kInt8) return;
  const int64_t added = panels_.size(0) * panels_.size(2) - columns_;
  scales_ = at::constant_pad_nd(scales, {0, added});
  sums_ = at::constant_pad_nd(words.narrow(0, 0, columns_).view(at::kChar).sum(1, false, at::kInt), {0, added});
}

void PackedWeight::lay_out(const Tensor& words) {
  const int64_t count = words.size(1), width = kernel_.panel_columns, panels = (columns_ + width - 1) / width;
  panels_ = at::empty({panels, count, width}, at::kInt);
  const int32_t* const from = words.const_data_ptr<int32_t>();
  int32_t* const to = panels_.mutable_data_ptr<int32_t>();
  at::parallel_for(0, panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * width, columns = std::min(width, columns_ - first);
      for (int64_t w = 0; w < count; ++w) {
        int32_t* const row = to + (panel * count + w) * width;
        for (int64_t c = 0; c < width; ++c) row[c] = c < columns ? from[(first + c) * count + w] : 0;
      }
    }
  });
}

PackedWeight::Words PackedWeight::words_of(const Tensor& rows, bool is_weight) const {
  if (precision_ == Precision::kFp32) return {rows.view(at::kInt), {}, {}};
  const int64_t count = rows.size(0), words = words_of_row(precision_, depth_), room = rounded_up(count, kRowsRead);
  Words result;
  result.values = at::empty({room, words}, at::kInt);
  if (room > count) result.values.narrow(0, count, room - count).zero_();
  if (precision_ == Precision::kInt8) result.scales = at::empty({count}, at::kFloat);
  if (precision_ == Precision::kInt8 && !is_weight) result.zeros = at::empty({count}, at::kInt);
  const RowsToWords args = {precision_,
                            is_weight,
                            depth_,
                            words,
                            rows.const_data_ptr<float>(),
                            result.values.mutable_data_ptr<int32_t>(),
                            mutable_data_of<float>(result.scales),
                            mutable_data_of<int32_t>(result.zeros)};
  at::parallel_for(0, count, std::max<int64_t>(kRowsPerTask, kProductsPerTask / 4 / words),
                   [&](int64_t begin, int64_t end) { kernel_.to_words(args, begin, end); });
  return result;
}

std::pair<Tensor, Tensor> PackedWeight::nonzeros_of(const Tensor& rows) const {
  const int64_t count = rows.size(0), words = rows.size(1), groups = (count + kRowsPerGroup - 1) / kRowsPerGroup;
  Tensor nonzeros = at::empty({groups, words}, at::kInt), counts = at::empty({groups}, at::kInt);
  const NonzeroWords args = {count, words, rows.const_data_ptr<float>(), nonzeros.mutable_data_ptr<int32_t>(),
                             counts.mutable_data_ptr<int32_t>()};
  at::parallel_for(0, groups, std::max<int64_t>(1, kProductsPerTask / 4 / words),
                   [&](int64_t first, int64_t last) { kernel_.find_nonzeros(args, first, last); });
  return {nonzeros, counts};
}

void PackedWeight::run(const PackedProduct& product, int64_t rows) const {
  const int64_t panels = panels_.size(0), blocks = (rows + kRowBlock - 1) / kRowBlock;
  const int64_t products_of_task = std::max<int64_t>(1, std::min(rows, kRowBlock) * product.words * kernel_.panel_columns);
  // A thread takes some panels through all blocks, of which the last may be small; a block's rows pass all of them
  // while they are in cache.
  at::parallel_for(0, panels * blocks, 1 + kProductsPerTask / products_of_task, [&](int64_t first, int64_t last) {
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t block = (first + i) % blocks, begin = block * kRowBlock;
      for (int64_t task = first + i; task < last; task += blocks)
        kernel_.multiply(product, task / blocks, begin, std::min(rows, begin + kRowBlock));
    }
  });
}

Tensor PackedWeight::multiply(const Tensor& x, const Tensor& bias, ProductEnd end, RowZeros zeros) const {
  if (weight_.defined()) return plain_product(x, weight_, bias, end);
  if (x.size(1) != depth_)
    throw ShapeError("rows of " + std::to_string(x.size(1)) + " numbers for a weight of " + std::to_string(depth_) + " inputs");
  RECORD_FUNCTION("lacuna::packed_product", std::vector<c10::IValue>());
  Tensor result = at::empty({x.size(0), columns_}, x.options());
  const Tensor rows = x.contiguous();
  const auto [words, row_scales, row_zeros] = words_of(rows, false);
  const bool skips_zeros = zeros == RowZeros::kMany && kernel_.find_nonzeros != nullptr;
  const auto [nonzeros, nonzero_counts] = skips_zeros ? nonzeros_of(rows) : std::pair<Tensor, Tensor>();
  const PackedProduct product = {.words = panels_.size(1),
                                 .columns = columns_,
                                 .x = words.const_data_ptr(),
                                 .panels = panels_.const_data_ptr(),
                                 .row_scales = data_of<float>(row_scales),
                                 .column_scales = data_of<float>(scales_),
                                 .row_zeros = data_of<int32_t>(row_zeros),
                                 .column_sums = data_of<int32_t>(sums_),
                                 .bias = data_of<float>(bias),
                                 .end = end,
                                 .nonzeros = data_of<int32_t>(nonzeros),
                                 .nonzero_counts = data_of<int32_t>(nonzero_counts),
                                 .y = result.mutable_data_ptr<float>()};
  run(product, x.size(0));
  return result;
}

QuantizedWeight quantized(const Tensor& weight) {
  const Tensor rows = weight.detach().contiguous();
  const int64_t count = rows.size(0), depth = rows.size(1), words = words_of_row(Precision::kInt8, depth);
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
