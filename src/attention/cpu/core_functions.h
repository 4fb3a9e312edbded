#pragma once

#include <ATen/core/Tensor.h>

#include "attention/cpu/core.h"
#include "attention/cpu/core_run.h"
#include "attention/registry.h"

/// The core's functions and a type's rows for the target in use, by the kind of number.
namespace lacuna {

inline core::Functions<float> functions_for(float /*stored*/) {
  return attention_target() == AttentionTarget::kAvx2 ? core::functions_avx2() : core::functions_avx512();
}
inline core::Functions<float> functions_for(at::BFloat16 /*stored*/) {
  switch (attention_target()) {
    case AttentionTarget::kAvx2:
    case AttentionTarget::kAvx512:
      break;
    case AttentionTarget::kAvx512Bf16:
      return core::functions_avx512_bf16();
    case AttentionTarget::kAmx:
      return core::functions_amx();
  }
  return functions_for(float());
}
inline core::Functions<double> functions_for(double /*stored*/) {
  return core::functions_plain();
}
inline types::RowFunctions<float> rows_for(const types::TypeEntry& entry, float /*kind*/) {
  return attention_target() == AttentionTarget::kAvx2 ? entry.avx2() : entry.avx512();
}
inline types::RowFunctions<double> rows_for(const types::TypeEntry& entry, double /*kind*/) {
  return entry.plain;
}

}  // namespace lacuna
