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

namespace {

bool has_avx512() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
  return has;
}

}  // namespace

template <>
const RowKernels<float>& row_kernels<float>() {
  return has_avx512() ? avx512::kFloat : avx2::kFloat;
}

template <>
const RowKernels<double>& row_kernels<double>() {
  return has_avx512() ? avx512::kDouble : avx2::kDouble;
}

const char* row_kernels_target() {
  return has_avx512() ? "avx512" : "avx2";
}

}  // namespace lacuna
