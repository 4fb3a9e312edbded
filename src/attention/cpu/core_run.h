#pragma once

#include <vector>

#include "attention/call.h"

/// The CPU core on whole calls.
namespace lacuna {

struct AttentionGradients {
  Tensor q, k, v;
  std::vector<Tensor> numbers;
  Tensor mask_q = {}, mask_k = {};  // of a type with a mask in the mask pass
  Tensor packed = {};               // if the call's parts are packed: k and v, or q, k and v, are its parts
};

/// What the rows of a type with a mask give beside their weights in the mask pass: types::calibrated::Result.
inline constexpr int64_t kMaskResults = 2;

/// Sentences with at most so many keys keep all their weights for the backward pass.
inline constexpr int64_t kKeptKeys = 128;

/// Weights that the forward pass keeps for the backward pass (kept_rows.h says which); `keys` are those of weights kept as lists.
struct KeptWeights {
  Tensor weights = {}, keys = {};
};

/// What the forward pass returns beside the context.
struct CoreResults {
  Tensor of_mask = {};       ///< [Tq, H, kMaskResults], of types with a mask in the mask pass
  Tensor kept = {};          ///< [Tq, H]: a number that each row's search found (such as sparsemax's threshold), for types that keep it
  KeptWeights weights = {};  ///< weights that the backward pass need not compute again
};

/// What the backward pass takes beside the gradient of the context.
struct CoreBackward {
  Tensor of_mask = {};                  ///< [Tq, H, kMaskResults]: the gradient of these; undefined = none
  Tensor kept = {};                     ///< from the forward pass, or undefined
  KeptWeights weights = {};             ///< likewise
  bool wants_k = true, wants_v = true;  ///< whether the gradients of k and v are needed; types with a mask may do without
};

/// True if the CPU core can run the call: q, k and v are equally wide, on the CPU, and float, double or bf16. Not bf16 if sentences share
/// keys (sums of their gradients would be rounded at each step) or the type has a mask.
bool core_takes(const AttentionCall& call);

/// The context [Tq, H, d], contiguous, of a call that core_takes(), with q, k and v (and mask_q, mask_k) contiguous over d.
Tensor run_core(const AttentionCall& call, const ForwardContext& context, CoreResults* results = nullptr);

/// The gradients of the call's inputs, from that of the context [Tq, H, d].
AttentionGradients run_core_backward(const AttentionCall& call, const ForwardContext& context, const Tensor& context_gradient,
                                     const CoreBackward& given = {});

/// Instruction sets that the core may use, best last.
enum class AttentionTarget {
  kAvx2,
  kAvx512,
  kAvx512Bf16,  ///< the same, with products of numbers of bf16 in vectors
  kAmx          ///< ... and in tiles
};
/// Those that this machine has, best last.
std::vector<AttentionTarget> attention_targets();

/// The one in use: the best that this machine has, unless another was asked for.
AttentionTarget attention_target();
/// `avx2`, `avx512`, `avx512_bf16` or `amx`.
const char* name_of(AttentionTarget target);
bool has_attention_target(AttentionTarget target);
/// For tests: uses this instruction set from now on. Throws MachineError if this machine does not have it.
void use_attention_target(AttentionTarget target);

}  // namespace lacuna
