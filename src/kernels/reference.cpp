#include "kernels/reference.h"

#include <stdexcept>

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
    case Activation::kSwiglu:
      throw std::logic_error("swiglu has inner products of its own: swiglu_dropout");
  }
  return drop(at::relu(x), dropout);
}

Tensor swiglu_dropout(const Tensor& x, const Dropout& dropout) {
  const std::vector<Tensor> parts = x.chunk(2, 1);
  return drop(at::silu(parts[0]) * parts[1], dropout);
}

Tensor turned(const Tensor& x, const Rotation& rotation) {
  const int64_t tokens = x.size(0), parts = x.size(1), heads = x.size(2), pairs = x.size(3) / 2;
  const Tensor positions = tensor_of(rotation.positions, x.device()).to(at::kLong);
  const auto of_rows = [&](const Tensor& table) { return table.index_select(0, positions).view({tokens, 1, 1, pairs}); };
  const Tensor c = of_rows(rotation.cosines), s = of_rows(rotation.sines), both = x.narrow(1, 0, 2).to(c.scalar_type());
  const int64_t place = rotation.is_interleaved ? 4 : 3;
  const std::vector<Tensor> pair =
      (rotation.is_interleaved ? both.reshape({tokens, 2, heads, pairs, 2}) : both.reshape({tokens, 2, heads, 2, pairs})).unbind(place);
  const Tensor result = at::stack({pair[0] * c - pair[1] * s, pair[0] * s + pair[1] * c}, place).reshape(both.sizes());
  return at::cat({result.to(x.scalar_type()), x.narrow(1, 2, parts - 2)}, 1);
}

Tensor embed(const Tensor& table, const Tensor& ids, double scale, const Tensor& position_table, const Tensor& positions,
             const Dropout& dropout, int64_t zero_id) {
  Tensor x = at::embedding(table, ids) * scale;  // unlike index_select's, its gradient adds up in the same order again on a GPU
  if (zero_id >= 0) x = x.masked_fill(ids.eq(zero_id).unsqueeze(1), 0);
  if (position_table.defined()) x = x + at::embedding(position_table, positions.to(at::kLong));
  return drop(x, dropout);
}

}  // namespace lacuna::reference
