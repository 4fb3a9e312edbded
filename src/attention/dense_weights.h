#pragma once

#include "attention/attention.h"

/// Attention in two halves, with the weights between them as a tensor that autograd knows: for layers that change
/// weights. Both halves are calls of `attention` itself, with unit vectors as values or as keys, so they run on every
/// device and with every type and pattern that it does. A row costs memory and time for every key, seen or not.
namespace lacuna {

/// The weights before dropout of call.type, [Tq, H, K], K at least the most keys of a sentence: element j is that of the
/// key at position j, 0 where the query does not see it. With gradients for q, k and numbers; v and dropout are not
/// read, and a probe is not shown anything. If sentences share rows of k, each row must be at one position in all of
/// them (as the slots of beam search are); throws ShapeError otherwise.
Tensor dense_weights(const AttentionCall& call, const ForwardContext& context);

/// The context [Tq, H, d] with dropout: sum_j w_j v_j over the keys that call.type's pattern shows, w [Tq, H, K] laid
/// out as by dense_weights. With gradients for w and v. `identity` is a type whose weights are the scores, with the
/// same pattern; q, k, scale and numbers of the call are not read.
Tensor dense_context(const AttentionCall& call, const Tensor& weights, const AttentionType& identity, const ForwardContext& context);

/// A type with the pattern of `type`: `rela` without rectifying, whose weights are the scores, or softmax.
std::shared_ptr<const AttentionType> identity_like(const AttentionType& type, int64_t num_heads);
std::shared_ptr<const AttentionType> softmax_like(const AttentionType& type, int64_t num_heads);

}  // namespace lacuna
