#include "kernels/packed_weight.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/buffer.h"
#include "base/error.h"
#include "kernels/gpu/started.h"
#include "kernels/matmul.h"
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

Tensor ended(const Tensor& product, ProductEnd end) {
  switch (end) {
    case ProductEnd::kNone:
      break;
    case ProductEnd::kRelu:
      return at::relu(product);
    case ProductEnd::kGelu:
      return at::gelu(product);
    case ProductEnd::kSwish:
      return at::silu(product);
  }
  return product;
}

/// Counts what a GPU that is emulated would start for a product in float.
void count_emulated(ProductEnd end) {
  gpu::count_launch();
  if (end != ProductEnd::kNone) gpu::count_launch();
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

/// The memory of a product beside its rows and its weight.
struct PackedWeight::WordMemory {
  Buffer<int32_t> values, zeros, nonzeros, nonzero_counts;
  Buffer<float> scales;
};

PackedWeight::PackedWeight(const Tensor& weight, Precision precision, const PackedKernel* kernel, const Tensor& bias)
    : precision_(precision), columns_(weight.size(0)), depth_(weight.size(1)), words_(words_of_row(precision, depth_)) {
  if (precision == Precision::kBf16 && weight.scalar_type() == at::kFloat && is_on_gpu(weight)) {
    weight_ = weight.detach().to(at::kBFloat16);
    if (bias.defined()) rounded_bias_ = bias.detach().to(at::kBFloat16);
    return;
  }
  if (!weight.is_cpu() || weight.scalar_type() != at::kFloat) {
    weight_ = weight.detach();
    return;
  }
  if (precision == Precision::kInt8 && depth_ > kMostBytesInSum)
    throw ConfigError("a weight of the model has " + std::to_string(depth_) + " inputs, and sums of int8 hold those of " +
                      std::to_string(kMostBytesInSum) + "; translate with --precision bf16 or fp32");
  kernel_ = kernel != nullptr ? *kernel : packed_kernels(precision).front();
  const Tensor rows = weight.detach().contiguous();
  WordMemory memory;
  const Words words = words_of(rows.const_data_ptr<float>(), columns_, true, memory);
  if (precision == Precision::kInt8) take_scales(reinterpret_cast<int8_t*>(memory.values.of(0)), words.scales);
  lay_out(static_cast<const int32_t*>(words.values));
}

/// Sets scales_ and sums_ of a weight of bytes, and fits its rows to short sums.
void PackedWeight::take_scales(int8_t* bytes, const float* scales) {
  const int64_t room = rounded_up(columns_, kernel_.panel_columns);
  scales_ = at::zeros({room}, at::kFloat);
  sums_ = at::zeros({room}, at::kInt);
  float* const scale = std::copy_n(scales, columns_, scales_.mutable_data_ptr<float>()) - columns_;
  int32_t* const sums = sums_.mutable_data_ptr<int32_t>();
  at::parallel_for(0, columns_, kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int8_t* const of_row = bytes + row * words_ * 4;
      if (kernel_.fit_short_sums != nullptr) kernel_.fit_short_sums(of_row, words_, scale[row]);
      sums[row] = std::accumulate(of_row, of_row + words_ * 4, int32_t{0});
    }
  });
}

void PackedWeight::lay_out(const int32_t* words) {
  const int64_t width = kernel_.panel_columns, panels = (columns_ + width - 1) / width;
  panels_ = at::empty({panels, words_, width}, at::kInt);
  int32_t* const to = panels_.mutable_data_ptr<int32_t>();
  at::parallel_for(0, panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * width, columns = std::min(width, columns_ - first);
      for (int64_t w = 0; w < words_; ++w) {
        int32_t* const row = to + (panel * words_ + w) * width;
        for (int64_t c = 0; c < width; ++c) row[c] = c < columns ? words[(first + c) * words_ + w] : 0;
      }
    }
  });
}

PackedWeight::Words PackedWeight::words_of(const float* rows, int64_t count, bool is_weight, WordMemory& memory) const {
  if (precision_ == Precision::kFp32) return {rows, nullptr, nullptr};
  const bool are_bytes = precision_ == Precision::kInt8;
  const int64_t room = rounded_up(count, kRowsRead);
  int32_t* const values = memory.values.of(room * words_);
  std::fill(values + count * words_, values + room * words_, 0);
  const RowsToWords args = {precision_,
                            is_weight,
                            depth_,
                            words_,
                            rows,
                            values,
                            are_bytes ? memory.scales.of(count) : nullptr,
                            are_bytes && !is_weight ? memory.zeros.of(count) : nullptr};
  at::parallel_for(0, count, std::max<int64_t>(kRowsPerTask, kProductsPerTask / 4 / words_),
                   [&](int64_t begin, int64_t end) { kernel_.to_words(args, begin, end); });
  return {values, args.scales, args.zeros};
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

/// Returns the product with a weight that is not packed. With one in bf16, x is rounded to bf16 too, and products are summed in float.
Tensor PackedWeight::plain_product(const Tensor& x, const Tensor& bias, ProductEnd end, bool is_rounded) const {
  if (!takes_bf16()) return ended(at::linear(x, weight_, optional_of(bias)), end);
  const Tensor rows = x.to(at::kBFloat16), weight = weight_.t();
  if (!is_rounded) return ended(matmul(rows, weight, bias), end);
  const Tensor rounded_bias = bias.defined() && !rounded_bias_.defined() ? bias.to(at::kBFloat16) : rounded_bias_;
  if (end == ProductEnd::kRelu && bias.defined())  // the product's kernel adds and cuts
    return at::_addmm_activation(rounded_bias, rows, weight, /*beta=*/1, /*alpha=*/1, /*use_gelu=*/false);
  return ended(matmul_to_bf16(rows, weight, rounded_bias), end);
}

Tensor PackedWeight::multiply(const Tensor& x, const Tensor& bias, ProductEnd end, RowZeros zeros, bool is_rounded) const {
  if (weight_.defined()) return plain_product(x, bias, end, is_rounded);
  if (x.size(1) != depth_)
    throw ShapeError("rows of " + std::to_string(x.size(1)) + " numbers for a weight of " + std::to_string(depth_) + " inputs");
  if (is_on_gpu(x)) count_emulated(end);
  Tensor result = at::empty({x.size(0), columns_}, x.options());
  multiply(x.contiguous().const_data_ptr<float>(), x.size(0), data_of<float>(bias), result.mutable_data_ptr<float>(), end, zeros);
  return result;
}

void PackedWeight::multiply(const float* x, int64_t rows, const float* bias, float* y, ProductEnd end, RowZeros zeros) const {
  RECORD_FUNCTION("lacuna::packed_product", std::vector<c10::IValue>());
  thread_local WordMemory memory;
  const Words words = words_of(x, rows, false, memory);
  NonzeroWords nonzeros = {rows, words_, x, nullptr, nullptr};
  if (zeros == RowZeros::kMany && kernel_.find_nonzeros != nullptr) {
    const int64_t groups = (rows + kRowsPerGroup - 1) / kRowsPerGroup;
    nonzeros.nonzeros = memory.nonzeros.of(groups * words_);
    nonzeros.counts = memory.nonzero_counts.of(groups);
    at::parallel_for(0, groups, std::max<int64_t>(1, kProductsPerTask / 4 / words_),
                     [&](int64_t first, int64_t last) { kernel_.find_nonzeros(nonzeros, first, last); });
  }
  run({.words = words_,
       .columns = columns_,
       .x = words.values,
       .panels = panels_.const_data_ptr(),
       .row_scales = words.scales,
       .column_scales = data_of<float>(scales_),
       .row_zeros = words.zeros,
       .column_sums = data_of<int32_t>(sums_),
       .bias = bias,
       .end = end,
       .nonzeros = nonzeros.nonzeros,
       .nonzero_counts = nonzeros.counts,
       .y = y},
      rows);
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
