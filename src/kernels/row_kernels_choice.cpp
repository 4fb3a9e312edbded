#include <atomic>

#include "kernels/cpu_target.h"
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

template <class T>
std::vector<const RowKernels<T>*> those_that_run(const RowKernels<T>& of_avx512, const RowKernels<T>& of_avx2) {
  if (cpu_has(CpuTarget::kAvx512)) return {&of_avx512, &of_avx2};
  return {&of_avx2};
}

}  // namespace

template <>
std::vector<const RowKernels<float>*> all_row_kernels() {
  return those_that_run(avx512::kFloat, avx2::kFloat);
}
template <>
std::vector<const RowKernels<double>*> all_row_kernels() {
  return those_that_run(avx512::kDouble, avx2::kDouble);
}

namespace {

template <class T>
std::atomic<const RowKernels<T>*>& chosen_row_kernels() {
  static std::atomic<const RowKernels<T>*> chosen = all_row_kernels<T>().front();
  return chosen;
}

}  // namespace

template <>
const RowKernels<float>& row_kernels<float>() {
  return *chosen_row_kernels<float>();
}
template <>
const RowKernels<double>& row_kernels<double>() {
  return *chosen_row_kernels<double>();
}

void set_row_kernels(const RowKernels<float>& kernels) {
  chosen_row_kernels<float>() = &kernels;
}
void set_row_kernels(const RowKernels<double>& kernels) {
  chosen_row_kernels<double>() = &kernels;
}

}  // namespace lacuna
