#include "attention/cpu/core_masked.h"
#include "attention/cpu/core_together.h"
#include "attention/cpu/machine_plain.h"

namespace lacuna::core {

Functions<double> functions_plain() {
  using One = Core<PlainMachine<double>>;
  using Masked = MaskedCore<PlainMachine<double>>;
  return {One::forward,
          One::backward,
          Masked::forward,
          Masked::backward,
          One::memory_elements,
          Masked::mask_memory_elements,
          nullptr,
          CoreTogether<PlainMachine<double>>::forward};
}

}  // namespace lacuna::core
