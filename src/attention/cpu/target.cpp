#include "attention/cpu/target.h"

#include <atomic>

#include "base/error.h"

namespace lacuna {
namespace {

std::atomic<CpuTarget>& current_target() {
  static std::atomic<CpuTarget> target = attention_targets().back();
  return target;
}

}  // namespace

std::vector<CpuTarget> attention_targets() {
  std::vector<CpuTarget> targets = {CpuTarget::kAvx2, CpuTarget::kAvx512, CpuTarget::kAvx512Bf16, CpuTarget::kAmx};
  std::erase_if(targets, [](CpuTarget target) { return !cpu_has(target); });
  return targets;
}

CpuTarget attention_target() {
  return current_target();
}

void use_attention_target(CpuTarget target) {
  if (!cpu_has(target)) throw MachineError(std::string("this processor has no ") + name_of(target));
  current_target() = target;
}

}  // namespace lacuna
