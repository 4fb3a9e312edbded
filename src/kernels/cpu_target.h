#pragma once

#include <cstddef>
#include <string_view>

namespace lacuna {

/// The instruction sets that CPU kernels are compiled for. AVX-512 stands for F, BW, CD, DQ and VL together, which
/// every server since Skylake has; the sets below it include it.
enum class CpuTarget { kAvx2, kAvxVnni, kAvx512, kAvx512Vnni, kAvx512Bf16, kAmx };

/// The targets' names, in the order of CpuTarget, as `lacuna info` prints them and CMakeLists.txt defines LACUNA_TARGET,
/// a macro for sources (no setting of a run: kernels take the best set that the machine has).
inline constexpr const char* kCpuTargetNames[] = {"avx2", "avxvnni", "avx512", "avx512_vnni", "avx512_bf16", "amx"};

/// Returns the target with this name.
consteval CpuTarget cpu_target(std::string_view name) {
  size_t index = 0;
  while (kCpuTargetNames[index] != name) ++index;
  return static_cast<CpuTarget>(index);
}

/// Returns the target's name.
const char* name_of(CpuTarget target);

/// Returns whether this machine multiplies matrices faster in bf16 than in fp32: with tiles, and with AVX512-BF16 on
/// processors that are not Intel's. Intel's cores start one product of bf16 vectors a cycle and two of fp32, so that
/// without tiles bf16 gains nothing in the products and loses in the conversions.
bool bf16_is_faster();

/// Returns whether this machine runs the target's code: the processor has the instructions, the operating system keeps
/// their registers and, for AMX, grants this process their use. AVX2 is always there: the whole program needs it.
bool cpu_has(CpuTarget target);

}  // namespace lacuna
