#include "model/linear.h"

#include "kernels/layers.h"

namespace lacuna {
namespace {

void give_memory_back(const Tensor& weight) {
  c10::StorageImpl& memory = *weight.storage().unsafeGetStorageImpl();
  memory.set_data_ptr_noswap(at::DataPtr(nullptr, weight.device()));
  memory.release_data_and_set_meta_custom_data_ptr_error_msg_("the weight is packed, and its memory given back: the model only translates");
}

}  // namespace

std::shared_ptr<const PackedWeight> PackedCache::of(const Tensor& weight, const Tensor& bias) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (packed_ && is_given_back_) return packed_;
  if (!packed_ || data_ != weight.const_data_ptr() || version_ != weight._version()) {
    packed_ = std::make_shared<const PackedWeight>(weight, precision_, nullptr, bias);
    data_ = weight.const_data_ptr();
    version_ = static_cast<uint32_t>(weight._version());
  }
  return packed_;
}

void PackedCache::drop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  packed_.reset();
}

void PackedCache::set_precision(Precision precision) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (precision != precision_) packed_.reset();
  precision_ = precision;
}

Precision PackedCache::precision() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return precision_;
}

void PackedCache::keep_copy_alone(const Tensor& weight) {
  const std::shared_ptr<const PackedWeight> packed = of(weight);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_given_back_ || !packed->is_copy()) return;
  is_given_back_ = true;
  give_memory_back(weight);
}

Linear::Linear(int64_t inputs, int64_t outputs, const ParameterPath& path, const LinearOptions& options)
    : weight_(register_parameter("weight",
                                 stacked_xavier_uniform(options.blocks, outputs / options.blocks, inputs, options.gain, path / "weight"))) {
  if (options.has_bias) bias_ = register_parameter("bias", at::zeros({outputs}, at::kFloat));
}

Tensor Linear::forward(const Tensor& x, const ForwardContext& context, bool is_rounded, const NormSource* source) {
  if (!at::GradMode::is_enabled()) return without_gradients(x, ProductEnd::kNone, RowZeros::kFew, is_rounded);
  packed_.drop();
  return lacuna::linear(x, weight_, bias_, context.precision, is_rounded, source);
}

ResidualNorm Linear::forward(const Tensor& x, const ResidualEnd& end, const ForwardContext& context) {
  if (!at::GradMode::is_enabled()) return residual_norm(end, without_gradients(x, ProductEnd::kNone, RowZeros::kFew, /*is_rounded=*/true));
  return linear_to_residual(x, weights_to_train(), end, context.precision);
}

LinearWeights Linear::weights_to_train() {
  packed_.drop();
  return {weight_, bias_};
}

void Linear::keep_packed(Precision precision) {
  packed_.set_precision(precision);
  packed_.keep_copy_alone(weight_);
}

Tensor Linear::constant(const Tensor& x, const ForwardContext& context) {
  if (!at::GradMode::is_enabled()) return without_gradients(x, ProductEnd::kNone);
  packed_.drop();
  const at::NoGradGuard no_gradients;
  return lacuna::linear(x, weight_, bias_, context.precision);
}

}  // namespace lacuna
