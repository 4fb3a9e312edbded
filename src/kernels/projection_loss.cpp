#include "kernels/projection_loss.h"

#include <algorithm>
#include <type_traits>

#include "kernels/layer_products.h"
#include "kernels/parallel.h"
#include "kernels/profile.h"
#include "kernels/reference.h"
#include "kernels/row_tensors.h"

namespace lacuna {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The matrix and the bias that make logits of hidden rows.
struct Projection {
  Tensor weight;  // [V, D]
  Tensor bias;    // [V]; undefined = none

  int64_t outputs() const { return weight.size(0); }
};

/// The loss of each row, and the gradients of its sum.
struct Pass {
  Tensor loss, nll, correct;  // [T]
  Tensor hidden_gradient, weight_gradient, bias_gradient;
};

/// Allocates a pass.
Pass new_pass(const Tensor& hidden, const Projection& projection, bool wants_gradient) {
  const auto numbers = [&](at::ScalarType type) { return at::empty({hidden.size(0)}, hidden.options().dtype(type)); };
  Pass pass;
  pass.loss = numbers(at::kDouble);
  pass.nll = numbers(at::kDouble);
  pass.correct = numbers(at::kLong);
  if (wants_gradient) {
    pass.hidden_gradient = at::empty_like(hidden);
    const auto zeros_like = [](const Tensor& parameter) {
      const bool has_gradient = parameter.defined() && parameter.requires_grad();
      return has_gradient ? at::zeros(parameter.sizes(), parameter.options()) : Tensor();
    };
    pass.weight_gradient = zeros_like(projection.weight);
    pass.bias_gradient = zeros_like(projection.bias);
  }
  return pass;
}

/// Adds the column sums of a chunk's gradient of logits [rows, V], in their order, to `bias_gradient`, unless that is undefined.
void add_bias_gradient(const Tensor& bias_gradient, const Tensor& gradient) {
  if (!bias_gradient.defined()) return;
  const bool is_rounded = gradient.scalar_type() == at::kBFloat16;
  bias_gradient.add_(is_rounded ? rounded_with_sums(gradient).sums : gradient.sum(0));
}

/// The three products of a chunk of rows: logits, and what their gradient does to hidden rows and the projection.
/// Chunks share the buffers.
template <class T>
class ChunkProducts {
 public:
  ChunkProducts(const Tensor& hidden, const Projection& projection, Precision precision)
      : precision_(precision),
        in_bf16_(precision == Precision::kBf16 && std::is_same_v<T, float>),
        hidden_(in_bf16_ ? rounded_to_bf16(hidden) : hidden),
        weight_(in_bf16_ ? rounded_to_bf16(projection.weight) : projection.weight),
        bias_(projection.bias) {
    if (in_bf16_) rounded_gradient_ = at::empty({std::min(chunk_rows(), hidden.size(0)), projection.outputs()}, at::kBFloat16);
  }

  int64_t chunk_rows() const { return in_bf16_ ? kRoundedLossRows : kLossRows; }

  /// Calls f(logits, first, count) for some rows at a time, `count` from the chunk's `first` on, until all have come;
  /// on all threads.
  template <class F>
  void for_logits(int64_t begin, int64_t rows, F f) {
    const Tensor chunk = hidden_.narrow(0, begin, rows);
    if constexpr (std::is_same_v<T, float>) {
      constexpr int64_t kBlock = 32;  // of logits that stay in the cache
      if (in_bf16_)
        return matmul_by_row_blocks(
            chunk, weight_.t(), bias_, kBlock, [&](float* logits, int64_t first, int64_t end) { f(logits, first, end - first); },
            precision_);
    }
    logits_ = matmul(chunk, weight_.t(), bias_, precision_);
    T* const logits = mutable_data_of<T>(logits_);
    for_parts(rows, kRowsPerTask, [&](int64_t first, int64_t end) { f(logits + first * weight_.size(0), first, end - first); });
  }

  /// Returns where the gradient of the logits of the chunk's row is written in bf16; null = over the logits.
  uint16_t* rounded_gradient(int64_t row) { return in_bf16_ ? bf16_bits_of(rounded_gradient_) + row * weight_.size(0) : nullptr; }

  /// Sets the chunk's rows of the hidden gradient (rows, D) = gradient (rows, V) x (V, D) and adds to the weight's
  /// (V, D), unless that is undefined, gradient^T x (rows, D), and to the bias's the column sums, for the chunk of the
  /// last for_logits. Where the gradient was not rounded, it has taken the logits' place.
  void propagate(int64_t begin, int64_t rows, const Pass& pass) const {
    const Tensor chunk = hidden_.narrow(0, begin, rows);
    const Tensor gradient = in_bf16_ ? rounded_gradient_.narrow(0, 0, rows) : logits_;
    matmul_into(pass.hidden_gradient.narrow(0, begin, rows), gradient, weight_, /*add=*/false, precision_);
    if (pass.weight_gradient.defined()) matmul_into(pass.weight_gradient, gradient.t(), chunk, /*add=*/true, precision_);
    add_bias_gradient(pass.bias_gradient, gradient);
  }

 private:
  Precision precision_;
  bool in_bf16_;
  Tensor hidden_, weight_, bias_;     // as the products take them
  Tensor logits_, rounded_gradient_;  // the one without bf16, the other with it
};

template <class T>
Pass whole_pass(const Tensor& hidden, const Projection& projection, const Tensor& targets, double smoothing, Precision precision,
                bool wants_gradient) {
  const int64_t tokens = hidden.size(0);
  Pass pass = new_pass(hidden, projection, wants_gradient);
  ChunkProducts<T> products(hidden, projection, precision);
  for (int64_t begin = 0; begin < tokens; begin += products.chunk_rows()) {
    const int64_t rows = std::min(products.chunk_rows(), tokens - begin);
    products.for_logits(begin, rows, [&](T* logits, int64_t first, int64_t count) {
      const LossRows<T> args = {.vocab_size = projection.outputs(),
                                .logits = logits,
                                .targets = data_of<int64_t>(targets) + begin + first,
                                .smoothing = smoothing,
                                .wants_gradient = wants_gradient,
                                .rounded_gradient = products.rounded_gradient(first),
                                .loss = mutable_data_of<double>(pass.loss) + begin + first,
                                .nll = mutable_data_of<double>(pass.nll) + begin + first,
                                .correct = mutable_data_of<int64_t>(pass.correct) + begin + first};
      row_kernels<T>().smoothed_loss(args, 0, count);
    });
    if (wants_gradient) products.propagate(begin, rows, pass);
  }
  return pass;
}

Pass fused_pass(const Tensor& hidden, const Projection& projection, const Tensor& targets, double smoothing, Precision precision,
                bool wants_gradient) {
  return with_scalar_of(hidden,
                        [&](auto t) { return whole_pass<decltype(t)>(hidden, projection, targets, smoothing, precision, wants_gradient); });
}

/// A few rows of a pass.
struct ChunkOfLoss {
  Tensor targets, loss, nll, correct;
  double smoothing;
  bool wants_gradient, is_rounded;  ///< the gradient of the logits, to bf16
};

/// Computes the chunk's results from logits (rows, V), and returns the gradient of the logits, if it is wanted.
using ChunkLoss = Tensor (*)(const Tensor& logits, const ChunkOfLoss& chunk);

Tensor chunk_loss_by_aten(const Tensor& logits, const ChunkOfLoss& chunk) {
  const Tensor places = chunk.targets.unsqueeze(1), log_probs = at::log_softmax(logits, 1),
               of_target = log_probs.gather(1, places).squeeze(1);
  chunk.loss.copy_((chunk.smoothing - 1) * of_target - chunk.smoothing * log_probs.mean(1));
  chunk.nll.copy_(-of_target);
  chunk.correct.copy_(logits.argmax(1).eq(chunk.targets));
  if (!chunk.wants_gradient) return {};
  Tensor gradient = log_probs.exp().sub_(chunk.smoothing / static_cast<double>(logits.size(1)));
  gradient.scatter_(1, places, gradient.gather(1, places) - (1 - chunk.smoothing));
  return chunk.is_rounded ? rounded_to_bf16(gradient) : gradient;
}

Tensor chunk_loss_on_gpu(const Tensor& logits, const ChunkOfLoss& chunk) {
  const bool rounds = chunk.wants_gradient && chunk.is_rounded;
  const Tensor rounded = rounds ? at::empty(logits.sizes(), logits.options().dtype(at::kBFloat16)) : Tensor();
  const LossRows<float> args = {.vocab_size = logits.size(1),
                                .logits = mutable_data_of<float>(logits),
                                .targets = data_of<int64_t>(chunk.targets),
                                .smoothing = chunk.smoothing,
                                .wants_gradient = chunk.wants_gradient,
                                .rounded_gradient = rounds ? bf16_bits_of(rounded) : nullptr,
                                .loss = mutable_data_of<double>(chunk.loss),
                                .nll = mutable_data_of<double>(chunk.nll),
                                .correct = mutable_data_of<int64_t>(chunk.correct)};
  with_gpu_kernels(logits, [&](const gpu::Kernels& kernels, void* stream) { return kernels.smoothed_loss(args, logits.size(0), stream); });
  return rounds ? rounded : logits;
}

/// Does what whole_pass does on any device. Stored: see LayerProducts.
template <class Stored>
Pass whole_pass_by(ChunkLoss chunk_loss, const Tensor& hidden, const Projection& projection, const Tensor& targets, double smoothing,
                   Precision precision, bool wants_gradient) {
  using Products = LayerProducts<Stored>;
  const Products products(precision);
  const Tensor all_rows = Products::factor(hidden), table = Products::factor(projection.weight);
  const int64_t tokens = hidden.size(0), few_rows = Products::kIsRounded ? kRoundedLossRows : kLossRows,
                chunk_rows = has_gpu_rows(hidden) ? std::max(few_rows, kLossLogits / projection.outputs()) : few_rows;
  Pass pass = new_pass(hidden, projection, wants_gradient);
  for (int64_t begin = 0; begin < tokens; begin += chunk_rows) {
    const int64_t count = std::min(chunk_rows, tokens - begin);
    const auto of_chunk = [&](const Tensor& all) { return all.narrow(0, begin, count); };
    const Tensor rows = of_chunk(all_rows);
    const Tensor logits = matmul(rows, table.t(), projection.bias, precision);  // (rows, D) x (D, V)
    const Tensor gradient = chunk_loss(logits, {.targets = of_chunk(targets),
                                                .loss = of_chunk(pass.loss),
                                                .nll = of_chunk(pass.nll),
                                                .correct = of_chunk(pass.correct),
                                                .smoothing = smoothing,
                                                .wants_gradient = wants_gradient,
                                                .is_rounded = Products::kIsRounded});
    if (!wants_gradient) continue;
    products.multiply_to(of_chunk(pass.hidden_gradient), gradient, table, /*add=*/false);  // (rows, V) x (V, D)
    if (pass.weight_gradient.defined())
      products.multiply_to(pass.weight_gradient, gradient.t(), rows, /*add=*/true);  // (V, rows) x (rows, D)
    add_bias_gradient(pass.bias_gradient, gradient);
  }
  return pass;
}

template <ChunkLoss kChunkLoss>
Pass pass_by(const Tensor& hidden, const Projection& projection, const Tensor& targets, double smoothing, Precision precision,
             bool wants_gradient) {
  if (precision == Precision::kBf16 && hidden.scalar_type() == at::kFloat)
    return whole_pass_by<uint16_t>(kChunkLoss, hidden, projection, targets, smoothing, precision, wants_gradient);
  return whole_pass_by<float>(kChunkLoss, hidden, projection, targets, smoothing, precision, wants_gradient);
}

using PassMaker = Pass (*)(const Tensor& hidden, const Projection& projection, const Tensor& targets, double smoothing, Precision precision,
                           bool wants_gradient);

class ProjectionLossFunction : public torch::autograd::Function<ProjectionLossFunction> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& hidden, const Tensor& weight, const std::optional<Tensor>& bias,
                               const Tensor& targets, double smoothing, Precision precision, PassMaker make_pass) {
    const Pass pass = make_pass(hidden, {weight, bias.value_or(Tensor())}, targets, smoothing, precision, true);
    context->saved_data["hidden"] = pass.hidden_gradient;
    context->saved_data["weight"] = pass.weight_gradient;
    context->saved_data["bias"] = pass.bias_gradient;
    const Tensor nll = pass.nll.sum(), correct = pass.correct.sum();
    context->mark_non_differentiable({nll, correct});
    return {pass.loss.sum(), nll, correct};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kLoss);
    const Tensor& factor = gradients[0];
    const bool is_known = !is_on_gpu(factor);  // a GPU would have to be waited for
    const double known = is_known ? factor.item<double>() : 0;
    const auto scaled = [&](const char* name) {
      Tensor gradient = context->saved_data[name].toTensor();
      if (!gradient.defined() || known == 1) return gradient;
      return is_known ? gradient * known : gradient * factor;
    };
    return {scaled("hidden"), scaled("weight"), scaled("bias"), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

ProjectionLoss loss_by(PassMaker make_pass, const Tensor& hidden, const Projection& projection, const Tensor& targets, double smoothing,
                       Precision precision) {
  if (!at::GradMode::is_enabled()) {
    const Pass pass = make_pass(hidden, projection, targets, smoothing, precision, false);
    return {pass.loss.sum(), pass.nll.sum(), pass.correct.sum()};
  }
  const variable_list sums =
      ProjectionLossFunction::apply(hidden, projection.weight, optional_of(projection.bias), targets, smoothing, precision, make_pass);
  return {sums[0], sums[1], sums[2]};
}

}  // namespace

ProjectionLoss projection_loss(const Tensor& hidden, const Tensor& weight, const Tensor& targets, double smoothing, Precision precision,
                               const Tensor& bias) {
  const TimedPart timed(ProfilePart::kLoss);
  if (!has_row_kernels(hidden)) return reference::projection_loss(hidden, weight, targets, smoothing, precision, bias);
  const Tensor y = targets.contiguous();
  if (has_gpu_rows(hidden)) return loss_by(pass_by<chunk_loss_on_gpu>, hidden, {weight, bias}, y, smoothing, precision);
  require_ids(data_of<int64_t>(y), y.numel(), weight.size(0));
  return loss_by(fused_pass, hidden.contiguous(), {weight, bias}, y, smoothing, precision);
}

ProjectionLoss reference::projection_loss(const Tensor& hidden, const Tensor& weight, const Tensor& targets, double smoothing,
                                          Precision precision, const Tensor& bias) {
  return loss_by(pass_by<chunk_loss_by_aten>, hidden, {weight, bias}, targets, smoothing, precision);
}

}  // namespace lacuna
