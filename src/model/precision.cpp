#include "model/precision.h"

#include "kernels/cpu_target.h"

namespace lacuna {
namespace {

/// Returns what kAuto stands for where the device may multiply in bf16.
Precision auto_precision(at::Device device) {
  return !device.is_cpu() || bf16_is_faster() ? Precision::kBf16 : Precision::kFp32;
}

}  // namespace

Precision training_precision(Precision wanted, at::Device device) {
  return wanted == Precision::kAuto ? auto_precision(device) : wanted;
}

Precision factor_precision(Precision wanted, at::Device device) {
  const Precision decided = training_precision(wanted, device);
  if (decided == Precision::kBf16) return decided;
  const bool has_tiles = device.is_cpu() && cpu_has(CpuTarget::kAmx);
  return decided == Precision::kBf16x3 && has_tiles ? decided : Precision::kFp32;
}

Precision translating_precision(Precision wanted, at::Device device) {
  if (!device.is_cpu()) return wanted == Precision::kBf16 ? wanted : Precision::kFp32;
  return wanted == Precision::kAuto ? auto_precision(device) : wanted;
}

}  // namespace lacuna
