#include "kernels/cpu_target.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <iterator>

namespace lacuna {
namespace {

/// The registers that the CPUID instruction writes. Its leaves and bits: Intel 64 and IA-32 Architectures Software
/// Developer's Manual, volume 2A.
struct CpuId {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

/// Executes CPUID; all zeros where the processor has no such leaf.
CpuId cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  CpuId answer;
  __get_cpuid_count(leaf, subleaf, &answer.eax, &answer.ebx, &answer.ecx, &answer.edx);
  return answer;
}

template <class... Bits>
bool has_bits(uint32_t word, Bits... bits) {
  return ((word >> bits & 1) && ...);
}

/// Reads XCR0: one bit for each kind of registers that the operating system saves for every process.
uint32_t kept_registers() {
  constexpr int kOsxsave = 27;
  if (!has_bits(cpuid(1).ecx, kOsxsave)) return 0;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

/// Asks Linux for the use of the tile registers, which it grants to processes one by one.
bool request_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

/// Whether this machine runs each target's code, in the order of CpuTarget.
std::array<bool, std::size(kCpuTargetNames)> read_targets() {
  const uint32_t kept = kept_registers();
  const bool keeps_avx = has_bits(kept, 1, 2), keeps_avx512 = keeps_avx && has_bits(kept, 5, 6, 7), keeps_tiles = has_bits(kept, 17, 18);
  const CpuId first = cpuid(7);
  const CpuId second = first.eax >= 1 ? cpuid(7, 1) : CpuId();
  const bool avx_vnni = keeps_avx && has_bits(second.eax, 4);
  const bool avx512 = keeps_avx512 && has_bits(first.ebx, 16, 17, 28, 30, 31);  // F, DQ, CD, BW, VL
  const bool avx512_vnni = avx512 && has_bits(first.ecx, 11);
  const bool avx512_bf16 = avx512_vnni && has_bits(second.eax, 5);
  const bool amx = avx512_bf16 && keeps_tiles && has_bits(first.edx, 22, 24, 25) && request_tiles();  // bf16, tiles, bytes
  return {true, avx_vnni, avx512, avx512_vnni, avx512_bf16, amx};
}

}  // namespace

const char* name_of(CpuTarget target) {
  return kCpuTargetNames[static_cast<size_t>(target)];
}

bool cpu_has(CpuTarget target) {
  static const auto targets = read_targets();
  return targets[static_cast<size_t>(target)];
}

bool bf16_is_faster() {
  constexpr uint32_t kGenuineIntel[] = {0x756e6547, 0x49656e69, 0x6c65746e};
  const CpuId vendor = cpuid(0);
  const bool is_intel = vendor.ebx == kGenuineIntel[0] && vendor.edx == kGenuineIntel[1] && vendor.ecx == kGenuineIntel[2];
  return cpu_has(CpuTarget::kAmx) || (cpu_has(CpuTarget::kAvx512Bf16) && !is_intel);
}

}  // namespace lacuna
