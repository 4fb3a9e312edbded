#include "kernels/cpu_features.h"
#include "kernels/row_kernels.h"

namespace lacuna {

#define LACUNA_DECLARE(target)             \
  namespace target {                       \
  extern const RowKernels<float> kFloat;   \
  extern const RowKernels<double> kDouble; \
  }
LACUNA_DECLARE(avx2)
LACUNA_DECLARE(avx512)
#undef LACUNA_DECLARE

template <>
const RowKernels<float>& row_kernels<float>() {
  return cpu_features().avx512 ? avx512::kFloat : avx2::kFloat;
}

template <>
const RowKernels<double>& row_kernels<double>() {
  return cpu_features().avx512 ? avx512::kDouble : avx2::kDouble;
}

const char* row_kernels_target() {
  return cpu_features().avx512 ? "avx512" : "avx2";
}

}  // namespace lacuna
