#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <mutex>

#include "attention/forward_context.h"
#include "kernels/gpu/kernels.h"
#include "kernels/layers.h"
#include "kernels/packed_weight.h"
#include "model/norm.h"
#include "model/parameter_path.h"

namespace lacuna {

/// A cache of the packed copy of a weight [N, K], for fast products without gradients; filled on first use.
///
/// The next product with gradients drops the copy, and it is packed again when the weight's storage or version has
/// changed (a checkpoint was loaded, an optimizer stepped through LibTorch). Code that writes weights through raw
/// pointers without such a product in between must call `drop()`.
class PackedCache {
 public:
  /// Returns the packed copy of `weight`, with one of its `bias` where PackedWeight keeps such; it may be undefined.
  std::shared_ptr<const PackedWeight> of(const Tensor& weight, const Tensor& bias = {});
  void drop();
  /// Sets what weights and rows are rounded to in later products.
  void set_precision(Precision precision);
  Precision precision();
  /// Packs the weight and gives its memory back, unless no copy is needed. Reading the weight is an error of LibTorch then.
  void keep_copy_alone(const Tensor& weight);

 private:
  std::mutex mutex_;  // several translators may share a model
  bool is_given_back_ = false;
  Precision precision_ = Precision::kFp32;
  std::shared_ptr<const PackedWeight> packed_;
  const void* data_ = nullptr;
  uint32_t version_ = 0;
};

struct LinearOptions {
  int64_t blocks = 1;  ///< matrices of equal height that the weight stacks, each initialized on its own
  double gain = 1;     ///< factor of the range of the initial values
  bool has_bias = true;
};

/// A linear layer: x [T, K] -> x weight^T + bias [T, N]. Parameters: weight [N, K], bias [N] unless it has none.
class Linear : public torch::nn::Module {
 public:
  Linear(int64_t inputs, int64_t outputs, const ParameterPath& path, const LinearOptions& options = {});
  Tensor forward(const Tensor& x, const ForwardContext& context) { return forward(x, context, false, nullptr); }
  Tensor forward(const NormedRows& x, const ForwardContext& context) { return forward(x.values, context, false, x.source.get()); }
  /// The forward pass, with the result in bf16 where training's products are, or on a GPU those without gradients.
  Tensor rounded(const NormedRows& x, const ForwardContext& context) { return forward(x.values, context, true, x.source.get()); }
  /// The forward pass, the residual connection and the norm of `end` in one pass over memory.
  ResidualNorm forward(const Tensor& x, const ResidualEnd& end, const ForwardContext& context);
  /// Returns end(x weight^T + bias), without gradients. A row of the result has the same bits whatever the number of
  /// rows. With `is_rounded`, it is bf16 where a GPU's products are.
  Tensor without_gradients(const Tensor& x, ProductEnd end, RowZeros zeros = RowZeros::kFew, bool is_rounded = false) {
    return packed_.of(weight_, bias_)->multiply(x, bias_, end, zeros, is_rounded);
  }
  at::ScalarType type() const { return weight_.scalar_type(); }
  /// Returns the type of rounded() without gradients.
  at::ScalarType rounded_type() { return packed_.of(weight_, bias_)->takes_bf16() ? at::kBFloat16 : type(); }
  /// Writes that of x [rows, K] to y [rows, N], for weights that takes_rows() says yes to.
  void without_gradients(const float* x, int64_t rows, float* y, ProductEnd end = ProductEnd::kNone, RowZeros zeros = RowZeros::kFew) {
    packed_.of(weight_)->multiply(x, rows, bias_.defined() ? bias_.const_data_ptr<float>() : nullptr, y, end, zeros);
  }
  /// Returns true for weights of float on the CPU, unless tests emulate a GPU there.
  bool takes_rows() const { return weight_.is_cpu() && weight_.scalar_type() == at::kFloat && gpu::kernels_for(false) == nullptr; }
  int64_t inputs() const { return weight_.size(1); }
  int64_t outputs() const { return weight_.size(0); }
  /// The forward pass as a constant: no gradient flows to x or to the parameters.
  Tensor constant(const Tensor& x, const ForwardContext& context);
  /// Returns the parameters for products with gradients, and drops the packed copy: they may change then.
  LinearWeights weights_to_train();
  PackedCache& packed() { return packed_; }
  /// Keeps the weight only packed for products in this precision.
  void keep_packed(Precision precision);

 private:
  Tensor forward(const Tensor& x, const ForwardContext& context, bool is_rounded, const NormSource* source);

  Tensor weight_, bias_;
  PackedCache packed_;
};

}  // namespace lacuna
