#include <hwy/targets.h>

#include <atomic>

#include "attention/cpu/core_run.h"
#include "kernels/bf16_product.h"
#include "kernels/packed_product.h"

namespace lacuna {
namespace {

std::atomic<AttentionTarget>& current_target() {
  static std::atomic<AttentionTarget> target = attention_targets().back();
  return target;
}

}  // namespace

std::vector<AttentionTarget> attention_targets() {
  std::vector<AttentionTarget> targets = {AttentionTarget::kAvx2, AttentionTarget::kAvx512, AttentionTarget::kAvx512Bf16,
                                          AttentionTarget::kAmx};
  std::erase_if(targets, [](AttentionTarget target) { return !has_attention_target(target); });
  return targets;
}

AttentionTarget attention_target() {
  return current_target();
}

const char* name_of(AttentionTarget target) {
  const char* const names[] = {"avx2", "avx512", "avx512_bf16", "amx"};
  return names[static_cast<size_t>(target)];
}

bool has_attention_target(AttentionTarget target) {
  const bool has_avx512 = (hwy::SupportedTargets() & HWY_AVX3) != 0;
  switch (target) {
    case AttentionTarget::kAvx2:
      return true;  // or the program would not have started
    case AttentionTarget::kAvx512:
      return has_avx512;
    case AttentionTarget::kAvx512Bf16:
      return has_avx512 && has_bf16_instructions();
    case AttentionTarget::kAmx:
      return has_avx512 && has_amx();
  }
  return false;
}

void use_attention_target(AttentionTarget target) {
  if (!has_attention_target(target)) throw MachineError(std::string("this processor has no ") + name_of(target));
  current_target() = target;
}

}  // namespace lacuna
