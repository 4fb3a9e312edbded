#include "kernels/cpu_target.h"
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

std::vector<PackedKernel> packed_kernels(Precision precision) {
  std::vector<PackedKernel> kernels;
  const auto add = [&](const PackedKernel& kernel) {
    if (cpu_has(kernel.target)) kernels.push_back(kernel);
  };
  if (precision == Precision::kInt8) {
    add(amx::kBytesKernel);
    add(avx512_vnni::kBytesKernel);
    add(avxvnni::kBytesKernel);
    add(avx512::kBytesKernel);
    add(avx2::kBytesKernel);
  } else if (precision == Precision::kBf16) {
    add(amx::kBf16Kernel);
    add(avx512_bf16::kBf16Kernel);
    add(avx512::kBf16Kernel);
    add(avx2::kBf16Kernel);
  } else {
    add(avx512::kFloatKernel);
    add(avx2::kFloatKernel);
  }
  return kernels;
}

}  // namespace lacuna
