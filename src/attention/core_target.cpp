#include <hwy/targets.h>

#include <atomic>

#include "attention/core_run.h"

namespace lacuna {
namespace {

AttentionTarget best_target() {
  return has_attention_target(AttentionTarget::kAvx512) ? AttentionTarget::kAvx512 : AttentionTarget::kAvx2;
}

std::atomic<AttentionTarget>& current_target() {
  static std::atomic<AttentionTarget> target = best_target();
  return target;
}

}  // namespace

AttentionTarget attention_target() {
  return current_target();
}

const char* name_of(AttentionTarget target) {
  return target == AttentionTarget::kAvx512 ? "avx512" : "avx2";
}

bool has_attention_target(AttentionTarget target) {
  return (hwy::SupportedTargets() & (target == AttentionTarget::kAvx512 ? HWY_AVX3 : HWY_AVX2)) != 0;
}

void use_attention_target(AttentionTarget target) {
  if (!has_attention_target(target)) throw MachineError(std::string("this processor has no ") + name_of(target));
  current_target() = target;
}

}  // namespace lacuna
