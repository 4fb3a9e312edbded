#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <mutex>

#include "base/forward_context.h"
#include "kernels/feed_forward.h"
#include "kernels/packed_weight.h"
#include "model/parameter_path.h"

namespace lacuna {

/// A weight [N, K] that is laid out anew for fast products without gradients, on first use.
///
/// The layout is dropped by the next product with gradients, and made anew when the weight's storage or version is another (a checkpoint
/// was loaded, an optimizer stepped through LibTorch). Who writes weights through raw pointers without
/// such a product in between calls `drop()`. A weight that lies in a checkpoint's file (take_weights) takes no memory beside its layout.
class PackedCache {
 public:
  /// The weight as it is laid out.
  std::shared_ptr<const PackedWeight> of(const Tensor& weight);
  /// end(x weight^T + bias) without gradients: a row has the same bits whatever the number of rows.
  Tensor multiply(const Tensor& x, const Tensor& weight, const Tensor& bias, ProductEnd end = ProductEnd::kNone,
                  RowZeros zeros = RowZeros::kFew) {
    return of(weight)->multiply(x, bias, end, zeros);
  }
  void drop();
  /// What weights and rows are rounded to in the products that follow.
  void set_format(WeightFormat format);
  WeightFormat format();

 private:
  std::mutex mutex_;  // several translators may share a model
  WeightFormat format_ = WeightFormat::kFloat;
  std::shared_ptr<const PackedWeight> packed_;
  const void* data_ = nullptr;
  uint32_t version_ = 0;
};

struct LinearOptions {
  int64_t blocks = 1;  ///< the weight is so many matrices on top of each other, each initialised on its own
  double gain = 1;     ///< of its first values, beside Xavier's
  bool has_bias = true;
};

/// x [T, K] -> x weight^T + bias [T, N]. Parameters: weight [N, K], bias [N] unless it has none.
class Linear : public torch::nn::Module {
 public:
  Linear(int64_t inputs, int64_t outputs, const ParameterPath& path, const LinearOptions& options = {});
  Tensor forward(const Tensor& x, const ForwardContext& context) { return forward(x, context, false, nullptr); }
  Tensor forward(const Ragged& x, const ForwardContext& context) { return forward(x.values, context, false, x.source.get()); }
  /// The same rounded to bf16 where the products of training round to it.
  Tensor rounded(const Ragged& x, const ForwardContext& context) { return forward(x.values, context, true, x.source.get()); }
  /// The same, and where it goes: one pass.
  ResidualNorm forward(const Tensor& x, const ResidualEnd& end, const ForwardContext& context);
  /// The first through `end`, without gradients.
  Tensor without_gradients(const Tensor& x, ProductEnd end, RowZeros zeros = RowZeros::kFew) {
    return packed_.multiply(x, weight_, bias_, end, zeros);
  }
  /// The same as a constant: no gradient flows to x or to the parameters.
  Tensor constant(const Tensor& x, const ForwardContext& context);
  /// The parameters for products with gradients, which are about to change them.
  LinearWeights weights_to_train();
  PackedCache& packed() { return packed_; }

 private:
  Tensor forward(const Tensor& x, const ForwardContext& context, bool is_rounded, const NormSource* source);

  Tensor weight_, bias_;
  PackedCache packed_;
};

}  // namespace lacuna
