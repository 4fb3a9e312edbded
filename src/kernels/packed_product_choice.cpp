#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/cpu_features.h"
#include "kernels/packed_product.h"

namespace lacuna {

#define LACUNA_DECLARE(target)                                       \
  namespace target {                                                 \
  extern const PackedKernel kFloatKernel, kBf16Kernel, kBytesKernel; \
  }
LACUNA_DECLARE(avx2)
LACUNA_DECLARE(avxvnni)
LACUNA_DECLARE(avx512)
LACUNA_DECLARE(avx512_vnni)
LACUNA_DECLARE(avx512_bf16)
LACUNA_DECLARE(amx)
#undef LACUNA_DECLARE

namespace {

/// Linux gives the tiles' registers to processes that ask for them.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool has_amx() {
  static const bool has = cpu_features().amx && may_use_tiles();
  return has;
}

}  // namespace

std::vector<PackedKernel> packed_kernels(WeightFormat format) {
  const CpuFeatures& cpu = cpu_features();
  std::vector<PackedKernel> kernels;
  const auto add = [&](bool has, const PackedKernel& kernel) {
    if (has) kernels.push_back(kernel);
  };
  switch (format) {
    case WeightFormat::kFloat:
      add(cpu.avx512, avx512::kFloatKernel);
      add(true, avx2::kFloatKernel);
      break;
    case WeightFormat::kBf16x3:
    case WeightFormat::kBf16:
      add(has_amx(), amx::kBf16Kernel);
      add(cpu.avx512_bf16, avx512_bf16::kBf16Kernel);
      add(cpu.avx512, avx512::kBf16Kernel);
      add(true, avx2::kBf16Kernel);
      break;
    case WeightFormat::kInt8:
      add(has_amx(), amx::kBytesKernel);
      add(cpu.avx512_vnni, avx512_vnni::kBytesKernel);
      add(cpu.avx_vnni, avxvnni::kBytesKernel);
      add(cpu.avx512, avx512::kBytesKernel);
      add(true, avx2::kBytesKernel);
      break;
  }
  return kernels;
}

bool has_instructions_for(WeightFormat format) {
  switch (format) {
    case WeightFormat::kFloat:
      break;
    case WeightFormat::kBf16x3:  // three products: only tiles make that up
      return has_amx();
    case WeightFormat::kBf16:
      return cpu_features().avx512_bf16;
    case WeightFormat::kInt8:
      return cpu_features().avx512_vnni || cpu_features().avx_vnni;
  }
  return true;
}

const char* name_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::kFloat:
      break;
    case WeightFormat::kBf16x3:
      return "bf16x3";
    case WeightFormat::kBf16:
      return "bf16";
    case WeightFormat::kInt8:
      return "int8";
  }
  return "fp32";
}

}  // namespace lacuna
