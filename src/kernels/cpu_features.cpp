#include "kernels/cpu_features.h"

#include <cpuid.h>

#include <cstdint>

namespace lacuna {
namespace {

/// What the instruction CPUID answers. Its leaves and bits: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A.
struct CpuId {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

/// All zeros where the processor has no such leaf.
CpuId cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  CpuId answer;
  __get_cpuid_count(leaf, subleaf, &answer.eax, &answer.ebx, &answer.ecx, &answer.edx);
  return answer;
}

template <class... Bits>
bool has_bits(uint32_t word, Bits... bits) {
  return ((word >> bits & 1) && ...);
}

/// XCR0: a bit for each kind of registers that the operating system keeps for every process.
uint32_t kept_registers() {
  constexpr int kOsxsave = 27;
  if (!has_bits(cpuid(1).ecx, kOsxsave)) return 0;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

CpuFeatures read_cpu_features() {
  const uint32_t kept = kept_registers();
  const bool keeps_avx = has_bits(kept, 1, 2), keeps_avx512 = keeps_avx && has_bits(kept, 5, 6, 7), keeps_tiles = has_bits(kept, 17, 18);
  const CpuId first = cpuid(7);
  const CpuId second = first.eax >= 1 ? cpuid(7, 1) : CpuId();
  CpuFeatures features = {};
  features.avx_vnni = keeps_avx && has_bits(second.eax, 4);
  features.avx512 = keeps_avx512 && has_bits(first.ebx, 16, 17, 28, 30, 31);  // F, DQ, CD, BW, VL
  features.avx512_vnni = features.avx512 && has_bits(first.ecx, 11);
  features.avx512_bf16 = features.avx512_vnni && has_bits(second.eax, 5);
  features.amx = features.avx512_bf16 && keeps_tiles && has_bits(first.edx, 22, 24, 25);  // bf16, tiles, bytes
  return features;
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = read_cpu_features();
  return features;
}

}  // namespace lacuna
