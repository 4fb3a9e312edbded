#include "kernels/packed_weight.h"

#include <ATen/record_function.h>

#include "base/error.h"
#include "kernels/row_tensors.h"

namespace lacuna {
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
  }
  return result;
}

}  // namespace

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

}  // namespace lacuna
