#include <atomic>
#include <type_traits>

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
std::atomic<const RowKernels<T>*>& chosen_row_kernels() {
  static std::atomic<const RowKernels<T>*> chosen = all_row_kernels<T>().front();
  return chosen;
}

}  // namespace

template <class T>
std::vector<const RowKernels<T>*> all_row_kernels() {
  std::vector<const RowKernels<T>*> kernels;
  if constexpr (std::is_same_v<T, float>) {
    kernels = {&avx512::kFloat, &avx2::kFloat};
  } else {
    kernels = {&avx512::kDouble, &avx2::kDouble};
  }
  if (!cpu_has(CpuTarget::kAvx512)) kernels.erase(kernels.begin());
  return kernels;
}

template <class T>
const RowKernels<T>& row_kernels() {
  return *chosen_row_kernels<T>();
}

template <class T>
void set_row_kernels(const RowKernels<T>& kernels) {
  chosen_row_kernels<T>() = &kernels;
}

template std::vector<const RowKernels<float>*> all_row_kernels<float>();
template std::vector<const RowKernels<double>*> all_row_kernels<double>();
template const RowKernels<float>& row_kernels<float>();
template const RowKernels<double>& row_kernels<double>();
template void set_row_kernels(const RowKernels<float>&);
template void set_row_kernels(const RowKernels<double>&);

}  // namespace lacuna
