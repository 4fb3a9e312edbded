#include "kernels/reference.h"

#include "base/device.h"

namespace lacuna::reference {
namespace {

Tensor drop(const Tensor& x, const Dropout& dropout) {
  return dropout.rows().threshold == 0 ? x : x * dropout_factors(dropout, x.size(1), x.options().requires_grad(false));
}

Tensor normalize(const Tensor& z, const NormWeights& norm) {
  if (!norm.is_rms) return at::layer_norm(z, {z.size(1)}, norm.gain, norm.bias, norm.epsilon(), /*cudnn_enable=*/false);
  return z * at::rsqrt(z.square().mean(1, /*keepdim=*/true) + norm.epsilon()) * norm.gain;
}

}  // namespace

ResidualNorm residual_norm(const ResidualEnd& end, const Tensor& output) {
  const Tensor sum = output.defined() ? end.residual + drop(output, end.dropout) : end.residual;
  return {sum, normalize(sum, end.norm)};
}

Tensor activation_dropout(const Tensor& x, Activation activation, const Dropout& dropout) {
  switch (activation) {
    case Activation::kRelu:
      break;
    case Activation::kGelu:
      return drop(at::gelu(x), dropout);
    case Activation::kSwish:
      return drop(at::silu(x), dropout);
  }
  return drop(at::relu(x), dropout);
}

Tensor embed(const Tensor& table, const Tensor& ids, double scale, const Tensor& position_table, const std::vector<int32_t>& positions,
             const Dropout& dropout, int64_t zero_id) {
  Tensor x = at::embedding(table, ids) * scale;  // unlike index_select's, its gradient adds up in the same order again on a GPU
  if (zero_id >= 0) x = x.masked_fill(ids.eq(zero_id).unsqueeze(1), 0);
  if (position_table.defined()) x = x + at::embedding(position_table, tensor_of(positions, ids.device()).to(at::kLong));
  return drop(x, dropout);
}

}  // namespace lacuna::reference
