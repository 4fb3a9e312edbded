#pragma once

#include <ATen/Functions.h>

#include <vector>

#include "attention/call.h"
#include "attention/cpu/core_run.h"

namespace lacuna {

/// Memory for the gradients of a call's q, k and v. Those of k and v are sums, 0 at first unless the core `clears_rows`.
inline AttentionGradients gradients_of(const AttentionCall& call, const CoreBackward& given, bool clears_rows) {
  AttentionGradients gradients;
  const auto sums = [&](const Tensor& like) {
    return clears_rows ? at::empty(like.sizes(), like.options()) : at::zeros(like.sizes(), like.options());
  };
  if (call.packed.defined()) {
    gradients.packed = sums(call.packed);
    const std::vector<Tensor> parts = gradients.packed.unbind(1);
    if (parts.size() == 3) gradients.q = parts.front();
    gradients.k = parts[parts.size() - 2];
    gradients.v = parts.back();
  }
  if (!gradients.q.defined()) gradients.q = at::empty(call.q.sizes(), call.q.options());
  if (!gradients.k.defined() && given.wants_k) gradients.k = sums(call.k);
  if (!gradients.v.defined() && given.wants_v) gradients.v = sums(call.v);
  return gradients;
}

}  // namespace lacuna
