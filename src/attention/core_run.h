#pragma once

#include "attention/call.h"

/// The CPU core on whole calls.
namespace lacuna {

struct AttentionGradients {
  Tensor q, k, v;
  std::vector<Tensor> numbers;
};

/// q, k and v float or double on CPU, contiguous over d. The result is [Tq, H, d], contiguous.
Tensor run_core(const AttentionCall& call, const ForwardContext& context);

/// Gradients from that of the context, [Tq, H, d].
AttentionGradients run_core_backward(const AttentionCall& call, const ForwardContext& context, const Tensor& context_gradient);

/// Instruction sets that the core may use, best last.
enum class AttentionTarget { kAvx2, kAvx512 };

/// The one in use: the best that this machine has, unless another was asked for.
AttentionTarget attention_target();
/// `avx2` or `avx512`.
const char* name_of(AttentionTarget target);
bool has_attention_target(AttentionTarget target);
/// For tests. Throws MachineError if this machine does not have it.
void use_attention_target(AttentionTarget target);

}  // namespace lacuna
